#!lua flags=no-writes
-- scan: a bounded stretch of an index of jobs by descending id, with the record of each.
-- KEYS ids ended children jobs
-- USES clock
-- ARGV 1 offset  2 below which member (BYLEX)  3 down to which member (BYLEX)  4 limit
--   5 which index: ids, of all jobs; ended, with a final state other than completed in front of the id;
--   children, with the parent and a zero byte in front  6 how many bytes are in front of the id
-- Answers id and record of each job in turn.

local index = ({ ids = IDS, ended = ENDED, children = CHILDREN })[ARGV[5]]
local members = call('ZRANGE', index, ARGV[2], ARGV[3], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[4])
local first = tonumber(ARGV[6]) + 1
local ids = {}
for n, member in ipairs(members) do ids[n] = sub(member, first) end
local records, answer = read(JOBS, ids), {}
for n, id in ipairs(ids) do
  answer[2 * n - 1], answer[2 * n] = id, records[n]
end
return answer
