#!lua flags=no-writes
-- rates: some keys that have a rate or a hold, from one name on.
-- KEYS rates queue_rates rate_index
-- USES clock
-- ARGV 1 offset  2 where to start (BYLEX)  3 where to end (BYLEX)  4 limit
-- Answers the time, then for each: queue, zero, lane ('' the queue itself)  what is kept of it.

local answer = { struct.pack('<d', now) }
for _, name in ipairs(call('ZRANGE', RATE_INDEX, ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, ARGV[4])) do
  local queue = string.match(name, '^(.*)%z$')
  answer[#answer + 1] = name
  answer[#answer + 1] = queue and call('HGET', QUEUE_RATES, queue) or call('HGET', RATES, name)
end
return answer
