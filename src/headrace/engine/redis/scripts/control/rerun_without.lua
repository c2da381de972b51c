#!lua flags=allow-oom
-- rerun_without: run a finished job again without some of its entries, and write a record.
-- KEYS jobs entries entry_order
-- USES clock layout job lanes queues children waits expiry rates rerun record
-- ARGV 1 offset  2 job id  3 token  4 to 5 the record: kind, zero byte, key ('' none)  body
--   then kind, zero byte, name of each entry
-- Answers 1; or 0, and nothing is changed, if the job is unknown, has not finished, or has another token.

local id = ARGV[2]
local record = call('HGET', JOBS, id)
local job = record and decode(record)
if not job or job.state <= RUNNING or job.token ~= tonumber(ARGV[3]) then return 0 end
local gone = {}
for i = 6, #ARGV do
  if call('HDEL', ENTRIES, id .. '\0' .. ARGV[i]) == 1 then gone[ARGV[i]] = true end
end
if next(gone) then
  for _, member in ipairs(call('ZRANGE', ENTRY_ORDER, '[' .. id .. '\0', '(' .. id .. '\1', 'BYLEX'))
  do
    if gone[sub(member, #id + 15)] then call('ZREM', ENTRY_ORDER, member) end
  end
end
if ARGV[4] ~= '' then put_record(ARGV[4], ARGV[5], '') end
rerun(id)
write_reruns()
return 1
