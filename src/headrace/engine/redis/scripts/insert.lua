#!lua
-- insert: store jobs in the order of the call; a (task, key) that exists is answered, not stored.
-- KEYS meta jobs bodies ids task_keys due queues signals
-- USES clock job lanes
-- ARGV 1 offset, then seven for each job:
--   id  queue  lane ('' none)  numbers (struct: width, flags, priority, run_at or 0, delay)
--   tail (task, zero, key, zero, source)  key field (task, zero, key; '' none)  body
-- Answers one id for each job, with "=" in front if it existed before.
-- A call that is repeated finds its own ids and changes nothing, so a lost answer does no harm.

local jobs, bodies, ids, ready, due = {}, {}, {}, {}, {}
local answer, lanes, queues = {}, {}, {}
local total = (#ARGV - 1) / 7
local number = call('HINCRBY', META, 'seq', total) - total

for i = 2, #ARGV, 7 do
  local id, queue, lane, field = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 5]
  number = number + 1
  local existing = field ~= '' and call('HGET', TASK_KEYS, field)
  if existing and existing ~= id then
    answer[#answer + 1] = '=' .. existing
  elseif call('HEXISTS', JOBS, id) == 1 then
    answer[#answer + 1] = id
  else
    local width, flags, priority, run_at, delay = struct.unpack('<HBhdd', ARGV[i + 3])
    if run_at == 0 then run_at = now + delay end
    local order = order_of(priority, number)
    local state = PENDING
    if run_at > now then
      state = SCHEDULED
      due[#due + 1] = run_at
      due[#due + 1] = id
      count(SCHEDULED, queue, 1)
    elseif lane == '' then
      ready[#ready + 1] = 0
      ready[#ready + 1] = queue .. '\0' .. order .. id
    else
      local name = queue .. '\0' .. lane
      call('ZADD', WAITING, 0, name .. '\0' .. order .. id)
      lanes[name] = width
    end
    if field ~= '' then call('HSET', TASK_KEYS, field, id) end
    call('HSET', JOBS, id, struct.pack(LAYOUT, state, flags, width, 0, 0, run_at, now, 0, 0,
      order, queue, lane, '') .. ARGV[i + 4])
    bodies[#bodies + 1] = id
    bodies[#bodies + 1] = ARGV[i + 6]
    ids[#ids + 1] = 0
    ids[#ids + 1] = id
    queues[queue] = true
    answer[#answer + 1] = id
  end
end

write('HSET', BODIES, bodies)
write('ZADD', IDS, ids)
write('ZADD', DUE, due)
write('ZADD', READY, ready)
made_ready = #ready / 2
for queue, _ in pairs(queues) do call('HSETNX', QUEUES, queue, 0) end
for lane, width in pairs(lanes) do
  call('HSET', LANES, lane, width)
  admit(lane, width)
end
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
