#!lua
-- signal: deliver an event to a job that has not finished. The first of a name counts.
-- KEYS jobs
-- USES clock layout job entry
-- ARGV 1 offset  2 job id  3 kind of the entry  4 event  5 body
-- Answers delivered, already, finished or unknown.

local id = ARGV[2]
local record = call('HGET', JOBS, id)
if not record then return 'unknown' end
if call('HEXISTS', ENTRIES, id .. '\0' .. ARGV[3] .. '\0' .. ARGV[4]) == 1 then return 'already' end
local job = decode(record)
if job.state > RUNNING then return 'finished' end
keep_entry(id, job.token, ARGV[3], ARGV[4], ARGV[5])
return 'delivered'
