#!lua flags=allow-oom
-- hold_lane: let nothing of a lane or a queue start for a time, whatever was said before.
-- KEYS idle signals
-- USES clock layout job lanes rates
-- ARGV 1 offset  2 queue  3 lane ('' the queue)  4 seconds; 0 ends a hold

local key, seconds = open_key(ARGV[2], ARGV[3], true), tonumber(ARGV[4])
key.held_until = seconds > 0 and now + seconds or 0
look_again(key)
write_key(key)
-- Who is handed a job does not ask the queue for a start.
if ARGV[3] == '' then call('DEL', IDLE) end
write_counts()
call('PUBLISH', SIGNALS, 'work')
return 1
