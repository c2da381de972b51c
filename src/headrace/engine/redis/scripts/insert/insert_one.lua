#!lua
-- insert_one: store one job that may run at once and has no lane and no parent, as most calls do.
-- KEYS meta jobs bodies ids task_keys ready queues held idle counts signals
-- USES layout
-- ARGV 1 offset, then one job as library/jobs/insert.lua reads it
-- Answers as insert, and leaves the same behind. Half of the time of a small script is spent before
-- its first line, so it brings along only what it needs, and calls the server as rarely as it can:
-- after a pause each call costs ten times of what it costs in a loop.
-- If nothing else is ready, a worker that has nothing to do is handed the job: leased as by exchange,
-- it comes with the signal instead of by a trip after it.

local CANDIDATES = 4
local call = redis.call
local id, head, field, body = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if field ~= '' then
  local existing = call('HEXISTS', BODIES, id) == 1 and id or call('HGET', TASK_KEYS, field)
  if existing then return { '=' .. existing } end
  call('HSET', TASK_KEYS, field, id)
end
-- Every job has a body, so this tells as well whether there is such a job.
if call('HSETNX', BODIES, id, body) == 0 then return { '=' .. id } end
local time = call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000 + tonumber(ARGV[1])
local width, flags, priority, _, _, queue = struct.unpack(HEAD, head)
local texts = string.sub(head, HEAD_TEXTS)
local order = string.format('%04d%013.0f', 1000 - priority, call('HINCRBY', META, 'seq', 1))
-- As library/claim/queues.lua does.
local paused = call('HGET', QUEUES, queue)
if not paused or paused ~= '1' and math.abs(now - paused) > 3600 then
  call('HSET', QUEUES, queue, string.format('%.0f', now))
end
call('ZADD', IDS, 0, id)

-- Who is dead, or does not listen any more, is passed over.
local some = paused ~= '1' and call('ZCARD', READY) == 0
  and call('HRANDFIELD', IDLE, CANDIDATES, 'WITHVALUES') or {}
for i = 1, #some, 2 do
  local worker_id = some[i]
  local lease, name, inbox, from = struct.unpack('<dss', some[i + 1])
  local queues = string.sub(some[i + 1], from)
  if queues == '' or string.find(queues, '\0' .. queue .. '\0', 1, true) then
    call('HDEL', IDLE, worker_id)
    local told = worker_id .. '\0' .. id .. '\0' .. priority .. '\0' .. texts
    if lease > now and call('PUBLISH', inbox, struct.pack('<I', #told) .. told .. body) > 0 then
      local worker = worker_id .. '\1' .. name
      call('HSET', JOBS, id, struct.pack(NUMBERS .. 'sc0c0', RUNNING, flags, width, 1, 1, now, now, now,
        0, #worker, order, texts, worker))
      call('ZADD', HELD, 0, worker .. '\0' .. id)
      call('HINCRBY', COUNTS, RUNNING .. queue, 1)
      return { id }
    end
  end
end

call('HSET', JOBS, id, struct.pack(NUMBERS .. 'sc0', PENDING, flags, width, 0, 0, now, now, 0, 0, 0,
  order, texts))
call('ZADD', READY, 0, queue .. '\0' .. order .. id)
call('PUBLISH', SIGNALS, 'work')
return { id }
