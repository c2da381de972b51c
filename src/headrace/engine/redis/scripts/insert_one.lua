#!lua
-- insert_one: store one job that may run at once and has no lane and no parent, as most calls do.
-- KEYS meta jobs bodies ids task_keys ready queues held leases idle counts signals
-- USES layout
-- ARGV 1 offset, then one job as library/insert.lua reads it
-- Answers as insert, and leaves the same behind. Half of the time of a small script is spent before
-- its first line, so it brings along only what it needs.
-- If nothing else is ready, a worker that has nothing to do is handed the job: leased as by exchange,
-- it comes with the signal instead of by a trip after it.

local CANDIDATES = 4
local call = redis.call
local id, head, field, body = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local existing = call('HEXISTS', JOBS, id) == 1 and id
  or field ~= '' and call('HGET', TASK_KEYS, field)
if existing then return { '=' .. existing } end
local time = call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000 + tonumber(ARGV[1])
local width, flags, priority, _, _, queue = struct.unpack(HEAD, head)
local order = string.format('%04d%013.0f', 1000 - priority, call('HINCRBY', META, 'seq', 1))
local texts = string.sub(head, HEAD_TEXTS)
local paused = call('HGET', QUEUES, queue)

local function leased_to(worker)
  return struct.pack(NUMBERS .. 'sc0c0', RUNNING, flags, width, 1, 1, now, now, now, 0, #worker,
    order, texts, worker)
end

-- A worker that is told of the job, and the job's record in its hands. Who is dead, or does not
-- listen any more, is passed over.
local function hand_over()
  if paused == '1' or call('ZCARD', READY) > 0 then return end
  local some = call('HRANDFIELD', IDLE, CANDIDATES, 'WITHVALUES')
  for i = 1, #some, 2 do
    local worker_id = some[i]
    local name, inbox, from = struct.unpack('ss', some[i + 1])
    local queues = string.sub(some[i + 1], from)
    if queues == '' or string.find(queues, '\0' .. queue .. '\0', 1, true) then
      call('HDEL', IDLE, worker_id)
      local lease = call('ZSCORE', LEASES, worker_id)
      if lease and tonumber(lease) > now then
        local worker = worker_id .. '\1' .. name
        local record = leased_to(worker)
        local message = struct.pack('<ssI', worker_id, id, #record) .. record .. body
        if call('PUBLISH', inbox, message) > 0 then return worker, record end
      end
    end
  end
end

local worker, record = hand_over()
if field ~= '' then call('HSET', TASK_KEYS, field, id) end
call('HSET', BODIES, id, body)
call('ZADD', IDS, 0, id)
if not paused then call('HSET', QUEUES, queue, 0) end
if worker then
  call('HSET', JOBS, id, record)
  call('ZADD', HELD, 0, worker .. '\0' .. id)
  call('HINCRBY', COUNTS, RUNNING .. queue, 1)
else
  call('HSET', JOBS, id, struct.pack(NUMBERS .. 'sc0', PENDING, flags, width, 0, 0, now, now, 0, 0, 0,
    order, texts))
  call('ZADD', READY, 0, queue .. '\0' .. order .. id)
  call('PUBLISH', SIGNALS, 'work')
end
return { id }
