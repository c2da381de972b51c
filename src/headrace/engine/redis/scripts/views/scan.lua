#!lua flags=no-writes
-- scan: a bounded stretch of an index of jobs by descending id, with their records.
-- KEYS ids ended children
-- USES clock records_by_state
-- ARGV 1 offset  2 below which member (BYLEX)  3 down to which member (BYLEX)  4 limit
--   5 which index: ids, of all jobs; ended, with a final state other than completed in front of the id;
--   children, with the parent and a zero byte in front  6 how many bytes are in front of the id
--   then states and error types as the library `records_by_state` reads them
-- Answers how many jobs it has walked over, the last of them ('' if none is left behind it), then what
-- the library `records_by_state` says.

local index = ({ ids = IDS, ended = ENDED, children = CHILDREN })[ARGV[5]]
local limit = tonumber(ARGV[4])
local members = call('ZRANGE', index, ARGV[2], ARGV[3], 'BYLEX', 'REV', 'LIMIT', 0, limit + 1)
local first = tonumber(ARGV[6]) + 1
local ids = {}
for n = 1, math.min(limit, #members) do ids[n] = sub(members[n], first) end
return choose(ids, 7, { #ids, #members > limit and ids[limit] or '' })
