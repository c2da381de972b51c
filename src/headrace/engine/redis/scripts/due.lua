#!lua flags=allow-oom
-- due: make scheduled jobs pending whose time has come, earliest first.
-- KEYS due jobs signals
-- USES clock job lanes
-- ARGV 1 offset  2 limit
-- Answers how many moved, and in how many seconds the next is due ('' none).
-- A job that kept its lane place during the wait goes straight to the ready line.

local ids = call('ZRANGE', DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[2])
local records, jobs, lanes = read(JOBS, ids), {}, {}
for n, id in ipairs(ids) do
  local job = decode(records[n])
  count(scheduled, job.queue, -1)
  local lane = make_pending(job, id)
  if lane then lanes[lane.name] = lane end
  jobs[2 * n - 1], jobs[2 * n] = id, encode(job)
end
write('ZREM', DUE, ids)
write('HSET', JOBS, jobs)
for _, lane in pairs(lanes) do admit(lane) end
write_lines()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
local next = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
return { #ids, next[2] and string.format('%.6f', math.max(0, tonumber(next[2]) - now)) or '' }
