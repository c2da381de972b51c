#!lua flags=no-writes
-- entries: what was kept with a job, in the order it was first written.
-- KEYS entries entry_order
-- USES clock
-- ARGV 1 offset  2 job id
-- Answers kind, zero byte, name and the value of each entry in turn.

local id = ARGV[2]
local order = call('ZRANGE', ENTRY_ORDER, '[' .. id .. '\0', '(' .. id .. '\1', 'BYLEX')
local names, fields = {}, {}
for n, member in ipairs(order) do
  names[n] = sub(member, #id + 15)
  fields[n] = id .. '\0' .. names[n]
end
local values, answer = read(ENTRIES, fields), {}
for n, name in ipairs(names) do
  answer[2 * n - 1], answer[2 * n] = name, values[n]
end
return answer
