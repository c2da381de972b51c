#!lua flags=allow-oom
-- pause: stop or resume handing out a queue's jobs.
-- KEYS queues signals
-- USES clock
-- ARGV 1 offset  2 queue  3 "1" paused, "0" not

call('HSET', QUEUES, ARGV[2], ARGV[3])
if ARGV[3] == '0' then call('PUBLISH', SIGNALS, 'work') end
return 1
