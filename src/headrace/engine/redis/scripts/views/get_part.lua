#!lua flags=no-writes
-- get_part: the first of some jobs, as many as fit into so many bytes.
-- KEYS bodies results
-- USES clock layout job body shown_jobs
-- ARGV 1 offset  2 bytes  3 1: the first is answered, however long it is; 0: it is not; then ids
-- Answers how many of the ids it has looked at, then what the library `shown_jobs` says.
-- Lengths are asked for first: what does not fit is not even copied.

local bytes, any = tonumber(ARGV[2]), ARGV[3] == '1'
local ids = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  local size = call('HSTRLEN', BODIES, id) + call('HSTRLEN', RESULTS, id)
  bytes = bytes - size
  if bytes < 0 and not (any and i == 4) then break end
  ids[#ids + 1] = id
end
return see(ids, { #ids })
