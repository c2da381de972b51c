#!lua flags=no-writes
-- scan: a bounded stretch of an index of jobs by descending id, with the record of each.
-- KEYS ids ended jobs
-- USES clock
-- ARGV 1 offset  2 below which id (BYLEX)  3 down to which id (BYLEX)  4 limit
--   5 a final state other than completed, whose own index is read; '' for all jobs
-- Answers id and record of each job in turn.

local state = ARGV[5]
local index = state == '' and IDS or ENDED
local members = call('ZRANGE', index, ARGV[2], ARGV[3], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[4])
local ids = {}
for n, member in ipairs(members) do ids[n] = sub(member, #state + 1) end
local records, answer = read(JOBS, ids), {}
for n, id in ipairs(ids) do
  answer[2 * n - 1], answer[2 * n] = id, records[n]
end
return answer
