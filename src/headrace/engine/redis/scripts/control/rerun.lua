#!lua flags=allow-oom
-- rerun: run finished jobs again, and scheduled ones now.
-- KEYS jobs
-- USES clock layout job lanes queues children waits expiry rates rerun
-- ARGV 1 offset, then ids
-- Answers the ids that were moved.

local answer = {}
for i = 2, #ARGV do
  if rerun(ARGV[i]) then answer[#answer + 1] = ARGV[i] end
end
write_reruns()
return answer
