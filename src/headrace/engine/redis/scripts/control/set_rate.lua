#!lua flags=allow-oom
-- set_rate: what an operator says of the rate of a lane or a queue.
-- KEYS idle signals
-- USES clock layout job lanes rates
-- ARGV 1 offset  2 queue  3 lane ('' the queue)  4 starts (0: nothing any more)  5 in so many seconds
--   6 burst

local key = open_key(ARGV[2], ARGV[3], true)
change_rate(key, key.by_jobs, as_rate(tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])))
-- Who is handed a job does not ask the queue for a start.
if ARGV[3] == '' then call('DEL', IDLE) end
write_counts()
call('PUBLISH', SIGNALS, 'work')
return 1
