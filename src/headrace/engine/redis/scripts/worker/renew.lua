#!lua flags=allow-oom
-- renew: extend a worker's lease, unless it has lapsed; tell which of its jobs should stop.
-- KEYS beats cancels
-- USES clock workers
-- ARGV 1 offset  2 worker id  3 lease seconds  4 stats
-- Answers 1 and the ids, or 0. A lapsed lease is never revived: somebody may have its jobs already.

local id = ARGV[2]
local until_time = alive(id)
if not until_time then return { 0 } end
if tonumber(until_time) <= now then
  die(id)
  return { 0 }
end
local lease = now + tonumber(ARGV[3])
call('ZADD', LEASES, lease, id)
call('HSET', BEATS, id, struct.pack('<dd', now, lease) .. ARGV[4])
local answer = { 1 }
-- Jobs that run and were asked to stop are few, so there is no index by worker.
local cancels = call('HGETALL', CANCELS)
for i = 1, #cancels, 2 do
  if sub(cancels[i + 1], 1, #id + 1) == id .. '\1' then answer[#answer + 1] = cancels[i] end
end
return answer
