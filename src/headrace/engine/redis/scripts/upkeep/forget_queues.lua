#!lua flags=allow-oom
-- forget_queues: forget queues that are empty, not paused, and have had no new job for a day.
-- KEYS meta queues counts ready reserved waiting
-- USES clock layout
-- ARGV 1 offset  2 where to go on ("0" at the beginning)  3 the least time of use that was met ('' none)
-- Answers where to go on, "0" at the end, and the least time of use. One call is one bounded step.
-- `meta` tells when a queue can be forgotten at the earliest, so that all of them are looked at only
-- then, and once an hour at most: there may be many that were used today.

local HOUR = 3600
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

if ARGV[2] == '0' then
  local look_at = tonumber(call('HGET', META, 'forget_queues_at') or 0)
  -- Further ahead is the time of a clock that was wrong.
  if now < look_at and look_at <= now + DAY + HOUR then return { '0', '' } end
end
-- A queue that comes while these steps are under way was not used before now.
local least = tonumber(ARGV[3]) or now
local cursor, found = unpack(call('HSCAN', QUEUES, ARGV[2], 'COUNT', AT_ONCE))
for i = 1, #found, 2 do
  local queue, used = found[i], found[i + 1]
  if used ~= '1' then
    -- Far from now is also the time of a clock that was wrong.
    local unused = math.abs(now - used) > DAY
    if unused and is_empty(queue) then
      call('HDEL', QUEUES, queue)
    else
      -- One that has jobs may be empty soon.
      least = math.min(least, unused and now - DAY or used)
    end
  end
end
if cursor == '0' then
  call('HSET', META, 'forget_queues_at', string.format('%.0f', math.max(least + DAY, now + HOUR)))
end
return { cursor, string.format('%.0f', least) }
