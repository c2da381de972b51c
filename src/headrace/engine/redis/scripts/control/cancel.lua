#!lua flags=allow-oom
-- cancel: end jobs that do not run; ask those that run to stop.
-- KEYS jobs signals
-- USES clock layout job lanes children waits expiry rates cancel stop
-- ARGV 1 offset  2 reason  then ids
-- Answers each id with "1" (cancelled) or "0" (asked to stop) in front; others are left out.
-- A claim cannot come in between: a job is either taken before, and asked, or never handed out.

local answer = {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local record = call('HGET', JOBS, id)
  local job = record and decode(record)
  if job and job.state == RUNNING then
    ask_to_stop(job, id, ARGV[2])
    answer[#answer + 1] = '0' .. id
  elseif job and job.state < RUNNING then
    cancel_job(job, id, ARGV[2])
    answer[#answer + 1] = '1' .. id
  end
end
write_cancelled()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
