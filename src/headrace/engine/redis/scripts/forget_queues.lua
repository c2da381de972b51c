#!lua flags=allow-oom
-- forget_queues: forget queues that are empty, not paused, and have had no new job for a day.
-- KEYS queues counts ready reserved waiting
-- USES clock layout
-- ARGV 1 offset  2 where to go on ("0" at the beginning)
-- Answers where to go on, "0" at the end. One call is one bounded step.

local DAY = 86400
local AT_ONCE = 500

local function is_empty(queue)
  local low, high = '[' .. queue .. '\0', '(' .. queue .. '\1'
  return call('HEXISTS', COUNTS, SCHEDULED .. queue) == 0
    and call('HEXISTS', COUNTS, RUNNING .. queue) == 0
    and call('ZLEXCOUNT', READY, low, high) == 0
    and call('ZLEXCOUNT', RESERVED, low, high) == 0
    and call('ZLEXCOUNT', WAITING, low, high) == 0
end

local cursor, found = unpack(call('HSCAN', QUEUES, ARGV[2], 'COUNT', AT_ONCE))
for i = 1, #found, 2 do
  -- Far from now is also the time of a clock that was wrong.
  if found[i + 1] ~= '1' and math.abs(now - found[i + 1]) > DAY and is_empty(found[i]) then
    call('HDEL', QUEUES, found[i])
  end
end
return cursor
