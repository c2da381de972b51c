#!lua
-- migrate: bring the store up to this version of the layout, unless it is for newer programs; returns
-- the version that is there and the lowest that a program must know.
-- KEYS meta bodies task_keys lanes results errors logs notes entries admitted
-- USES clock
-- ARGV 1 offset  2 the version that this Headrace knows  3... a version that states the lowest program
-- that may use the store after it, and that program's version; and so on
-- Any number of processes may run it at once: the first one writes, the others find it done.

local lowest = tonumber(call('HGET', META, 'schema') or 0)
local version = tonumber(call('HGET', META, 'version') or lowest)
local known = tonumber(ARGV[2])
if lowest > known then return { version, lowest } end
if version < known then
  for n = 3, #ARGV, 2 do
    if tonumber(ARGV[n]) > version then lowest = math.max(lowest, tonumber(ARGV[n + 1])) end
  end
  version = known
  call('HSET', META, 'schema', lowest, 'version', version)
end
-- A hash of small values is kept as a list that is searched from its start, which doubles what a
-- claim costs. One long value turns it into a table, and it stays one as long as it is not empty.
for _, hash in ipairs({ BODIES, TASK_KEYS, LANES, RESULTS, ERRORS, LOGS, NOTES, ENTRIES, ADMITTED }) do
  call('HSETNX', hash, '', string.rep(' ', 128))
end
return { version, lowest }
