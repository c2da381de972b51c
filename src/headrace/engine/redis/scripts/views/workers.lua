#!lua flags=no-writes
-- workers: every worker that is known, in one moment.
-- KEYS workers beats leases
-- USES clock
-- ARGV 1 offset
-- Answers for each worker: id  info  beat  "1" alive, "0" not

local answer = {}
local all = call('HGETALL', WORKERS)
for i = 1, #all, 2 do
  local lease = call('ZSCORE', LEASES, all[i])
  answer[#answer + 1] = all[i]
  answer[#answer + 1] = all[i + 1]
  answer[#answer + 1] = call('HGET', BEATS, all[i])
  answer[#answer + 1] = lease and tonumber(lease) > now and '1' or '0'
end
return answer
