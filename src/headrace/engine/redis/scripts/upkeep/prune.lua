#!lua flags=allow-oom
-- prune: delete finished jobs, oldest first, with their keys and entries.
-- KEYS meta jobs bodies ids task_keys finished ended results errors logs notes entries entry_order
-- KEYS children admitted expiry job_rates
-- USES clock layout job record
-- ARGV 1 offset  2 older than, in seconds ('' any age is kept)  3 keep ('' any number)  4 limit
--   5 how many of the oldest to pass over
-- Answers how many jobs were deleted, and how many of the oldest to pass over in the next step, -1 if
-- there is none.
-- Children of a parent that stays are spared. So many of them may be in front that a step finds
-- nothing else: then the caller takes the next one. One call is one bounded step.
-- `finished` is a list: when a job ended, then its id, in the order of time. A sorted set of all that
-- ever ended would have to be moved to a larger table now and then, at a microsecond for each job that
-- ends meanwhile. A job that was run again leaves its place behind, which is known by its time; `meta`
-- counts them.
-- The order is not that of time if the clock was ahead, or behind, for a while. Where a sample finds an
-- old job behind younger ones, those are moved to the end, a step at a time.

local LOOK = 1000
local SAMPLES = 32
local limit, passed = tonumber(ARGV[4]), tonumber(ARGV[5])
local stretch = math.max(limit, LOOK)

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

local places = call('LRANGE', FINISHED, passed, passed + stretch - 1)
local finished = call('LLEN', FINISHED) - (call('HGET', META, 'outdated') or 0)
-- Whoever finished before this has to go, and of the others so many of the oldest.
local before = ARGV[2] ~= '' and now - ARGV[2] or -math.huge
local beyond = ARGV[3] ~= '' and finished - tonumber(ARGV[3]) or 0

-- When the last of those beyond the newest that are kept has ended. Places of jobs that were run again
-- are passed over, as far as a step can look at so many; else it is a little earlier, never later.
local edge
local function edge_of_beyond()
  if edge then return edge end
  edge = -math.huge
  if beyond <= 0 then return edge end
  local place = call('LINDEX', FINISHED, beyond - 1)
  local left, stale = tonumber(ARGV[3]), call('LLEN', FINISHED) - finished
  if stale > 0 and left + stale < LOOK then
    local newest, newest_ids = call('LRANGE', FINISHED, -(left + stale + 1), -1), {}
    for n, each in ipairs(newest) do newest_ids[n] = sub(each, 9) end
    local records = read(JOBS, newest_ids)
    for n = #newest, 1, -1 do
      if records[n] and decode(records[n]).completed == struct.unpack('<d', newest[n]) then
        if left == 0 then
          place = newest[n]
          break
        end
        left = left - 1
      end
    end
  end
  edge = place and struct.unpack('<d', place) or edge
  return edge
end

-- Whether a parent stays: one that has not finished, is not old enough, or whose own parent stays. It
-- may yet ask for what came of its children. A circle of parents keeps nobody.
local stays = {}
local function parent_stays(id)
  local passed, answer = {}, false
  while id do
    if stays[id] ~= nil then
      answer = stays[id]
      break
    end
    stays[id] = false
    passed[#passed + 1] = id
    local record = call('HGET', JOBS, id)
    local job = record and decode(record)
    if not job then break end
    if job.state <= RUNNING or (job.completed >= before and job.completed > edge_of_beyond()) then
      answer = true
      break
    end
    id = has(job, CHILD) and family_of(job.tail) or nil
  end
  for _, each in ipairs(passed) do stays[each] = answer end
  return answer
end

local function is_spared(job)
  return has(job, CHILD) and parent_stays((family_of(job.tail)))
end

local given = {}
for n, place in ipairs(places) do given[n] = sub(place, 9) end

local entries = call('ZCARD', ENTRY_ORDER) > 0
local ids, ended, children, expiry, rated = {}, {}, {}, {}, {}
local keys, shown_by = {}, {}
local gone, moved, outdated, rank, more = {}, {}, 0, passed, #places == stretch

-- Whether a job further behind has been finished for long enough. Looks at other places each time, so
-- none is missed for ever.
local function old_behind(position)
  if before == -math.huge then return false end
  local step = (call('LLEN', FINISHED) - position) / SAMPLES
  local shift = now * 1000 % 1
  for n = 1, SAMPLES do
    local sample = n < SAMPLES and math.floor(position + step * (n - 1 + shift)) or -1
    local place = call('LINDEX', FINISHED, sample)
    if place and struct.unpack('<d', place) < before then return true end
  end
  return false
end

local function delete(id, job)
  ids[#ids + 1] = id
  if job.state ~= COMPLETED then ended[#ended + 1] = job.state .. id end
  local task, key = string.match(job.tail, '^([^%z]*)%z([^%z]*)%z')
  if key ~= '' then
    keys[#keys + 1] = task .. '\0' .. key
    shown_by[#keys] = id
  end
  if has(job, CHILD) then children[#children + 1] = family_of(job.tail) .. '\0' .. id end
  -- Only what a program from before layout 5 has ended is still there.
  if has(job, EXPIRES) then expiry[#expiry + 1] = id end
  if has(job, RATED) then rated[#rated + 1] = id end
  if entries then forget_entries(id) end
end

-- A job shows its key also after that has gone to a newer one, with which it stays.
local function own_keys()
  local own = {}
  for n, owner in ipairs(read(TASK_KEYS, keys)) do
    if owner == shown_by[n] then own[#own + 1] = keys[n] end
  end
  return own
end

for n, record in ipairs(read(JOBS, given)) do
  local id, job = given[n], record and decode(record)
  local ended_at = struct.unpack('<d', places[n])
  if not job or job.completed ~= ended_at then
    outdated = outdated + 1
    gone[#gone + 1] = n
  else
    if #ids == limit then
      more = false
      break
    end
    if not (ended_at < before or rank + #ids < beyond) then
      if #ids > 0 or (#moved == 0 and not old_behind(passed + n)) then
        more = false
        break
      end
      more = true
      moved[#moved + 1] = places[n]
      gone[#gone + 1] = n
    elseif #moved > 0 then
      break
    elseif is_spared(job) then
      rank = rank + 1
    else
      delete(id, job)
      gone[#gone + 1] = n
    end
  end
end
write('ZREM', ENDED, ended)
write('ZREM', CHILDREN, children)
write('HDEL', TASK_KEYS, own_keys())
write('ZREM', EXPIRY, expiry)
write('HDEL', JOB_RATES, rated)
for _, hash in ipairs({ JOBS, BODIES, RESULTS, ERRORS, LOGS, NOTES, ADMITTED }) do
  write('HDEL', hash, ids)
end
write('ZREM', IDS, ids)
if passed == 0 and gone[#gone] == #gone then
  call('LTRIM', FINISHED, #gone, -1)
elseif #gone > 0 then
  for _, n in ipairs(gone) do call('LSET', FINISHED, passed + n - 1, '') end
  call('LREM', FINISHED, #gone, '')
end
write('RPUSH', FINISHED, moved)
if outdated > 0 then call('HINCRBY', META, 'outdated', -outdated) end
return { #ids, more and rank or -1 }
