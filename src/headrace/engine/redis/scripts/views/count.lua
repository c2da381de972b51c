#!lua flags=no-writes
-- count: how many jobs there are in each state, by numbers that the server has at hand.
-- KEYS meta due ready reserved waiting held finished ended
-- USES clock layout
-- ARGV 1 offset
-- Answers the numbers of scheduled, pending, running, completed, failed, timed out and cancelled jobs.

local pending = 0
for _, index in ipairs({ READY, RESERVED, WAITING }) do pending = pending + call('ZCARD', index) end
local outdated = call('HGET', META, 'outdated') or 0
local answer = { call('ZCARD', DUE), pending, call('ZCARD', HELD),
  call('LLEN', FINISHED) - outdated - call('ZCARD', ENDED) }
for state = COMPLETED + 1, CANCELLED do
  answer[#answer + 1] = call('ZLEXCOUNT', ENDED, '[' .. state, '(' .. state + 1)
end
return answer
