#!lua flags=allow-oom
-- register: introduce a worker and start its lease; an earlier one of its name is dead from now on.
-- KEYS workers worker_names beats
-- USES clock workers
-- ARGV 1 offset  2 worker id  3 name  4 info  5 lease seconds  6 stats
-- One script, so two workers of one name cannot both believe that they were the last.

local id, name = ARGV[2], ARGV[3]
local earlier = call('HGET', WORKER_NAMES, name)
if earlier and earlier ~= id then die(earlier) end
local lease = now + tonumber(ARGV[5])
call('HSET', WORKER_NAMES, name, id)
call('HSET', WORKERS, id, name .. '\0' .. struct.pack('<d', now) .. ARGV[4])
call('HDEL', CLAIMANTS, id)
call('HSET', BEATS, id, struct.pack('<dd', now, lease) .. ARGV[6])
call('ZADD', LEASES, lease, id)
call('ZREM', DEAD, id)
call('ZREM', ORPHANS, id)
return 1
