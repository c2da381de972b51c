#!lua flags=allow-oom
-- lost: declare workers with a lapsed lease dead; answer jobs that dead workers hold.
-- KEYS jobs bodies
-- USES clock workers
-- ARGV 1 offset  2 limit
-- Answers the time, then id, record and body of each job. Nothing is taken from the dead:
-- the token decides who settles first. `orphans` are dead workers that held jobs when they died;
-- a dead worker is given no job, so one that holds none leaves that set for good.

local WORKERS_AT_ONCE = 100

local limit = tonumber(ARGV[2])
local lapsed = call('ZRANGE', LEASES, '-inf', now, 'BYSCORE', 'LIMIT', 0, WORKERS_AT_ONCE)
for _, worker in ipairs(lapsed) do die(worker) end

-- Leases that were written when the clock was ahead last as long as they were to last, from now.
-- They are the last to end, so a look at those is enough.
local latest = call('ZRANGE', LEASES, '+inf', now, 'BYSCORE', 'REV', 'LIMIT', 0, WORKERS_AT_ONCE)
for n, beat in ipairs(read(BEATS, latest)) do
  if beat then
    local at, ends = struct.unpack('<dd', beat)
    if at > now + 1 then
      local lease = now + (ends - at)
      call('ZADD', LEASES, lease, latest[n])
      call('HSET', BEATS, latest[n], struct.pack('<dd', now, lease) .. sub(beat, 17))
    end
  end
end

local ids = {}
for _, worker in ipairs(call('ZRANGE', ORPHANS, 0, -1)) do
  if #ids >= limit then break end
  local held = holds(worker, limit - #ids)
  if #held == 0 then call('ZREM', ORPHANS, worker) end
  for _, member in ipairs(held) do
    ids[#ids + 1] = sub(member, string.find(member, '\0', 1, true) + 1)
  end
end

local records, bodies = read(JOBS, ids), read(BODIES, ids)
local answer = { struct.pack('<d', now) }
for n, id in ipairs(ids) do
  answer[#answer + 1] = id
  answer[#answer + 1] = records[n]
  answer[#answer + 1] = bodies[n]
end
return answer
