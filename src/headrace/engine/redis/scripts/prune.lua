#!lua flags=allow-oom
-- prune: delete finished jobs, oldest first, with their keys and entries; clear long dead workers.
-- KEYS jobs bodies ids task_keys finished ended results errors logs notes entries entry_order
-- USES clock job workers
-- ARGV 1 offset  2 older than, in seconds ('' any age is kept)  3 keep ('' any number)  4 limit
-- Answers how many jobs were deleted. One call is one bounded step.

local DAY = 86400
local WORKERS_AT_ONCE = 100
local limit = tonumber(ARGV[4])

local function candidates()
  local count_old, surplus = 0, 0
  if ARGV[2] ~= '' then
    count_old = call('ZCOUNT', FINISHED, '-inf', '(' .. string.format('%.17g', now - ARGV[2]))
  end
  if ARGV[3] ~= '' then surplus = call('ZCARD', FINISHED) - tonumber(ARGV[3]) end
  local total = math.min(limit, math.max(count_old, surplus))
  if total <= 0 then return {} end
  return call('ZRANGE', FINISHED, 0, total - 1)
end

local function forget_entries(id)
  local low, high = '[' .. id .. '\0', '(' .. id .. '\1'
  for _, member in ipairs(call('ZRANGE', ENTRY_ORDER, low, high, 'BYLEX')) do
    call('HDEL', ENTRIES, id .. '\0' .. sub(member, #id + 15))
  end
  call('ZREMRANGEBYLEX', ENTRY_ORDER, low, high)
end

local ids = candidates()
local entries = call('ZCARD', ENTRY_ORDER) > 0
local ended, keys = {}, {}
for n, record in ipairs(read(JOBS, ids)) do
  local job = decode(record)
  if job.state ~= COMPLETED then ended[#ended + 1] = job.state .. ids[n] end
  local task, key = string.match(job.tail, '^([^%z]*)%z([^%z]*)%z')
  if key ~= '' then keys[#keys + 1] = task .. '\0' .. key end
  if entries then forget_entries(ids[n]) end
end
write('ZREM', ENDED, ended)
write('HDEL', TASK_KEYS, keys)
for _, hash in ipairs({ JOBS, BODIES, RESULTS, ERRORS, LOGS, NOTES }) do
  write('HDEL', hash, ids)
end
for _, index in ipairs({ IDS, FINISHED }) do write('ZREM', index, ids) end

local long_dead = call('ZRANGE', DEAD, '-inf', now - DAY, 'BYSCORE', 'LIMIT', 0, WORKERS_AT_ONCE)
for _, worker in ipairs(long_dead) do
  if #holds(worker, 1) == 0 then forget(worker) end
end
return #ids
