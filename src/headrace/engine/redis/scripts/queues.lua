#!lua flags=no-writes
-- queues: every queue with its depth, in one moment.
-- KEYS queues counts ready waiting
-- USES clock layout job age
-- ARGV 1 offset
-- Answers for each queue: name  paused  scheduled  waiting  ready  running  age of the oldest ready
-- job in seconds ('' none).

local answer = {}
local all = call('HGETALL', QUEUES)
for i = 1, #all, 2 do
  local queue = all[i]
  local low, high = '[' .. queue .. '\0', '(' .. queue .. '\1'
  local ready = call('ZLEXCOUNT', READY, low, high)
  for _, value in ipairs({
    queue, all[i + 1],
    call('HGET', COUNTS, SCHEDULED .. queue) or 0,
    call('ZLEXCOUNT', WAITING, low, high),
    ready,
    call('HGET', COUNTS, RUNNING .. queue) or 0,
    oldest_age(READY, queue, ready),
  }) do answer[#answer + 1] = value end
end
return answer
