#!lua flags=no-writes
-- record_list: small records of a kind by key.
-- KEYS records record_index
-- USES clock
-- ARGV 1 offset  2 kind  3 the key to start after ('' the first)  4 limit
-- Answers key and value of each record in turn.

local kind = ARGV[2]
local after = ARGV[3] == '' and '[' .. kind .. '\0' or '(' .. kind .. '\0' .. ARGV[3]
local fields = call('ZRANGE', RECORD_INDEX, after, '(' .. kind .. '\1', 'BYLEX', 'LIMIT', 0,
  ARGV[4])
local values, answer = read(RECORDS, fields), {}
for n, field in ipairs(fields) do
  answer[2 * n - 1], answer[2 * n] = sub(field, #kind + 2), values[n]
end
return answer
