#!lua flags=allow-oom
-- prune: delete finished jobs, oldest first, with their keys and entries; clear long dead workers.
-- KEYS jobs bodies ids task_keys finished ended results errors logs notes entries entry_order children
-- USES clock layout job record workers
-- ARGV 1 offset  2 older than, in seconds ('' any age is kept)  3 keep ('' any number)  4 limit
--   5 how many of the oldest to pass over
-- Answers how many jobs were deleted, and how many of the oldest were looked at if there are more.
-- Children of an unfinished parent are spared. So many of them may be in front that a step finds
-- nothing else: then the caller takes the next one. One call is one bounded step.

local DAY = 86400
local WORKERS_AT_ONCE = 100
local LOOK = 1000
local limit, passed = tonumber(ARGV[4]), tonumber(ARGV[5])

-- How many of the oldest have to go.
local function surplus()
  local old, beyond = 0, 0
  if ARGV[2] ~= '' then
    old = call('ZCOUNT', FINISHED, '-inf', '(' .. string.format('%.17g', now - ARGV[2]))
  end
  if ARGV[3] ~= '' then beyond = call('ZCARD', FINISHED) - tonumber(ARGV[3]) end
  return math.max(old, beyond)
end

local unfinished = {}

-- Its parent may yet ask for what came of it.
local function is_spared(job)
  if not has(job, CHILD) then return false end
  local parent = family_of(job.tail)
  if unfinished[parent] == nil then
    local record = call('HGET', JOBS, parent)
    unfinished[parent] = record and unpack_record('<B', record) <= RUNNING or false
  end
  return unfinished[parent]
end

-- Somebody has to remove the files of a job that kept some.
local function forget_entries(id)
  local low, high, artifacts = '[' .. id .. '\0', '(' .. id .. '\1', false
  for _, member in ipairs(call('ZRANGE', ENTRY_ORDER, low, high, 'BYLEX')) do
    local field = sub(member, #id + 15)
    call('HDEL', ENTRIES, id .. '\0' .. field)
    artifacts = artifacts or sub(field, 1, 9) == 'artifact\0'
  end
  call('ZREMRANGEBYLEX', ENTRY_ORDER, low, high)
  if artifacts then put_record('pruned-artifacts\0' .. id, '{}', '') end
end

local total = surplus()
local last = math.min(total, passed + math.max(limit, LOOK))
local oldest = last > passed and call('ZRANGE', FINISHED, passed, last - 1) or {}
local entries = call('ZCARD', ENTRY_ORDER) > 0
local ids, ended, keys, children = {}, {}, {}, {}
for n, record in ipairs(read(JOBS, oldest)) do
  if #ids == limit then break end
  local id, job = oldest[n], decode(record)
  if not is_spared(job) then
    ids[#ids + 1] = id
    if job.state ~= COMPLETED then ended[#ended + 1] = job.state .. id end
    local task, key = string.match(job.tail, '^([^%z]*)%z([^%z]*)%z')
    if key ~= '' then keys[#keys + 1] = task .. '\0' .. key end
    if has(job, CHILD) then children[#children + 1] = family_of(job.tail) .. '\0' .. id end
    if entries then forget_entries(id) end
  end
end
write('ZREM', ENDED, ended)
write('ZREM', CHILDREN, children)
write('HDEL', TASK_KEYS, keys)
for _, hash in ipairs({ JOBS, BODIES, RESULTS, ERRORS, LOGS, NOTES }) do
  write('HDEL', hash, ids)
end
for _, index in ipairs({ IDS, FINISHED }) do write('ZREM', index, ids) end

local long_dead = call('ZRANGE', DEAD, '-inf', now - DAY, 'BYSCORE', 'LIMIT', 0, WORKERS_AT_ONCE)
for _, worker in ipairs(long_dead) do
  if #holds(worker, 1) == 0 then forget(worker) end
end
return { #ids, last < total and last or 0 }
