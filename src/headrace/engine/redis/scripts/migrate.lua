#!lua
-- migrate: bring the store up to this version of the layout; answers the version that is there.
-- KEYS meta bodies task_keys lanes results errors logs notes entries
-- USES clock
-- ARGV 1 offset  2 the version that this Headrace knows
-- Any number of processes may run it at once: the first one writes, the others find it done.

local found = tonumber(call('HGET', META, 'schema') or 0)
if found < tonumber(ARGV[2]) then call('HSET', META, 'schema', ARGV[2]) end
-- A hash of small values is kept as a list that is searched from its start, which doubles what a
-- claim costs. One long value turns it into a table, and it stays one as long as it is not empty.
for _, hash in ipairs({ BODIES, TASK_KEYS, LANES, RESULTS, ERRORS, LOGS, NOTES, ENTRIES }) do
  call('HSETNX', hash, '', string.rep(' ', 128))
end
return call('HGET', META, 'schema')
