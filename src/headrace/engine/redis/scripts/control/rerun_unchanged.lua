#!lua flags=allow-oom
-- rerun_unchanged: run those finished jobs again that have these tokens.
-- KEYS jobs
-- USES clock layout job lanes queues children waits expiry rates rerun
-- ARGV 1 offset, then id and token of each
-- Answers the ids that were moved.

local answer = {}
for i = 2, #ARGV, 2 do
  local record = call('HGET', JOBS, ARGV[i])
  local job = record and decode(record)
  if job and job.state > RUNNING and job.token == tonumber(ARGV[i + 1]) then
    rerun(ARGV[i])
    answer[#answer + 1] = ARGV[i]
  end
end
write_reruns()
return answer
