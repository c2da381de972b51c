#!lua flags=allow-oom
-- forget_workers: forget workers that were declared dead more than a day ago and hold nothing.
-- KEYS
-- USES clock workers
-- ARGV 1 offset  2 how many of those that died first to pass over
-- Answers how many to pass over in the next step, -1 if there is none. One call is one bounded step.

local DAY = 86400
local AT_ONCE = 500
local passed = tonumber(ARGV[2])

local dead = call('ZRANGE', DEAD, '-inf', now - DAY, 'BYSCORE', 'LIMIT', passed, AT_ONCE)
for _, worker in ipairs(dead) do
  if #holds(worker, 1) == 0 then forget(worker) else passed = passed + 1 end
end
return #dead == AT_ONCE and passed or -1
