#!lua flags=allow-oom
-- pause: stop or resume handing out a queue's jobs.
-- KEYS queues signals
-- USES clock
-- ARGV 1 offset  2 queue  3 "1" paused, "0" not
-- One that is not has the time there; see library/claim/queues.lua.

call('HSET', QUEUES, ARGV[2], ARGV[3] == '1' and '1' or string.format('%.0f', now))
if ARGV[3] == '0' then call('PUBLISH', SIGNALS, 'work') end
return 1
