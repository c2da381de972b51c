#!lua flags=allow-oom
-- forget: remove entries of a finished job.
-- KEYS jobs entries entry_order
-- USES clock layout job
-- ARGV 1 offset  2 job id, then kind, zero, name of each entry
-- Answers 1, or 0 if the job is unknown or has not finished; then nothing is removed.

local id = ARGV[2]
local record = call('HGET', JOBS, id)
if not record or decode(record).state <= RUNNING then return 0 end
local gone = {}
for i = 3, #ARGV do
  if call('HDEL', ENTRIES, id .. '\0' .. ARGV[i]) == 1 then gone[ARGV[i]] = true end
end
if next(gone) then
  for _, member in ipairs(call('ZRANGE', ENTRY_ORDER, '[' .. id .. '\0', '(' .. id .. '\1', 'BYLEX'))
  do
    if gone[sub(member, #id + 15)] then call('ZREM', ENTRY_ORDER, member) end
  end
end
return 1
