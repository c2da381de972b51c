#!lua flags=allow-oom
-- know: a living worker knows other tasks than it said.
-- KEYS workers
-- USES clock workers
-- ARGV 1 offset  2 worker id  3 info, as `register` takes it

local known = alive(ARGV[2]) and call('HGET', WORKERS, ARGV[2])
if known then
  -- Its name and when it started stay in front.
  local info = string.find(known, '\0', 1, true) + 9
  call('HSET', WORKERS, ARGV[2], sub(known, 1, info - 1) .. ARGV[3])
  call('HDEL', CLAIMANTS, ARGV[2])
end
return 1
