-- rates: how fast jobs of a lane or a queue may start, and holds.
-- KEYS jobs ready due places rates queue_rates rate_index job_rates rated_jobs parked_jobs
-- Needs clock layout job lanes.
--   rates        of each lane that has a rate or a hold what is kept of it
--   queue_rates  the same of each queue, by its name
--   rate_index   queue, zero, lane ('' the queue itself) of both, with score 0
--   job_rates    of each job with a rate: starts, seconds, burst; its cost; 1 if retries count
--   rated_jobs   lane, zero, id of those that have not finished, with score 0
--   parked_jobs  ids of parked jobs by their time, as in `due`
-- What is kept is: starts, seconds and burst that the newest job says (0: nothing), the same of an
-- operator, which counts first; `tat`, when all that has started is paid for; until when nothing starts;
-- and of the job that was parked last its time, when all is paid for after it, and its order.
-- A lane of which jobs with a rate have not finished is in `rates`, so a claim that finds that empty, and
-- `queue_rates`, need not know of any of this.

local KEPT_RATE = '<ddIddIdddd'
-- Where the order begins in it.
local LINE_LAST = 73
local JOB_RATE = '<ddIdB'
local rate_keys = {}
-- Lanes in which a parked job has left its place.
local left_lanes = {}

local function as_rate(starts, seconds, burst)
  if starts == 0 then return nil end
  return { starts = starts, seconds = seconds, burst = burst, interval = seconds / starts }
end

local function is_same_rate(one, other)
  if not one or not other then return one == other end
  return one.starts == other.starts and one.seconds == other.seconds and one.burst == other.burst
end

-- What is kept of a lane, or of a queue (lane ''); nothing if it has neither rate nor hold, or with `new`
-- one that has not.
local function open_key(queue, lane, new)
  local name = queue .. '\0' .. lane
  local key = rate_keys[name]
  if key == nil then
    local kept
    if lane == '' then kept = call('HGET', QUEUE_RATES, queue) else kept = call('HGET', RATES, name) end
    key = false
    if kept then
      local a, b, c, d, e, f, tat, held_until, line_at, line_tat = struct.unpack(KEPT_RATE, kept)
      key = {
        name = name, queue = queue, lane = lane, by_jobs = as_rate(a, b, c),
        by_operator = as_rate(d, e, f), tat = tat, held_until = held_until, line_at = line_at,
        line_tat = line_tat, line_last = sub(kept, LINE_LAST),
      }
    end
    rate_keys[name] = key
  end
  if not key and new then
    key = {
      name = name, queue = queue, lane = lane, tat = 0, held_until = 0, line_at = 0, line_tat = 0,
      line_last = '',
    }
    rate_keys[name] = key
  end
  return key
end

local function rate_of(key)
  return key.by_operator or key.by_jobs
end

-- Keep it, or forget it if nobody says anything any more.
local function write_key(key)
  local hash, field = RATES, key.name
  if key.lane == '' then hash, field = QUEUE_RATES, key.queue end
  if not rate_of(key) and key.held_until <= now then
    call('HDEL', hash, field)
    call('ZREM', RATE_INDEX, key.name)
    rate_keys[key.name] = false
    return
  end
  local none = { starts = 0, seconds = 0, burst = 0 }
  local one, other = key.by_jobs or none, key.by_operator or none
  local record = struct.pack(KEPT_RATE, one.starts, one.seconds, one.burst, other.starts,
    other.seconds, other.burst, key.tat, key.held_until, key.line_at, key.line_tat) .. key.line_last
  if call('HSET', hash, field, record) == 1 then call('ZADD', RATE_INDEX, 0, key.name) end
end

-- Has claims look again at the parked jobs of a key, of which there are at most as many as the lane is
-- wide. The caller writes the key and the counts. Records have to be written before.
local function look_again(key)
  key.line_at = 0
  if key.lane == '' then return end
  local members = call('ZRANGE', PLACES, '[' .. key.name .. '\0', '(' .. key.name .. '\1', 'BYLEX')
  local ids, again, jobs, ready = {}, {}, {}, {}
  for n, member in ipairs(members) do ids[n] = sub(member, #key.name + 19) end
  for n, record in ipairs(read(JOBS, ids)) do
    local state, flags = unpack_record('<BB', record)
    if state == SCHEDULED and flags >= PARKED then
      local job = decode(record)
      job.state, job.run_at = PENDING, now
      again[#again + 1] = ids[n]
      put(ready, key.queue .. '\0' .. job.order .. ids[n])
      jobs[2 * #again - 1], jobs[2 * #again] = ids[n], encode(job)
    end
  end
  if #again == 0 then return end
  write('HSET', JOBS, jobs)
  write('ZREM', DUE, again)
  write('ZREM', PARKED_JOBS, again)
  write('ZADD', READY, ready)
  count(scheduled, key.queue, -#again)
  made_ready = made_ready + #again
end

-- Sets what jobs and an operator say. What has started counts by the new rate.
local function change_rate(key, by_jobs, by_operator)
  local before = rate_of(key)
  key.by_jobs, key.by_operator = by_jobs, by_operator
  local after = rate_of(key)
  if not is_same_rate(before, after) then
    if before and after then
      key.tat = now + math.max(key.tat - now, 0) / before.interval * after.interval
    end
    look_again(key)
  end
  write_key(key)
end

-- Of new jobs with a rate: id, queue, lane and what the job says. The last of a lane counts.
local function keep_rates(said)
  local kept, members, last = {}, {}, {}
  for n, each in ipairs(said) do
    local name = each.queue .. '\0' .. each.lane
    kept[2 * n - 1], kept[2 * n] = each.id, each.rate
    put(members, name .. '\0' .. each.id)
    last[name] = each
  end
  write('HSET', JOB_RATES, kept)
  write('ZADD', RATED_JOBS, members)
  for _, each in pairs(last) do
    local key, rate = open_key(each.queue, each.lane, true), as_rate(struct.unpack(JOB_RATE, each.rate))
    if not is_same_rate(key.by_jobs, rate) then change_rate(key, rate, key.by_operator) end
  end
end

-- A job is run again: it brings its rate along if that was forgotten.
local function bring_rate_back(job, id)
  call('ZADD', RATED_JOBS, 0, job.queue .. '\0' .. job.lane .. '\0' .. id)
  local key = open_key(job.queue, job.lane, true)
  if not key.by_jobs then
    local rate = as_rate(struct.unpack(JOB_RATE, call('HGET', JOB_RATES, id)))
    change_rate(key, rate, key.by_operator)
  end
end

leave_rates = function(job, id)
  if has(job, RATED) then call('ZREM', RATED_JOBS, job.queue .. '\0' .. job.lane .. '\0' .. id) end
  if has(job, PARKED) then
    call('ZREM', PARKED_JOBS, id)
    left_lanes[job.queue .. '\0' .. job.lane] = job
  end
end

move_up = function()
  for name, job in pairs(left_lanes) do
    local key = open_key(job.queue, job.lane)
    if key then
      look_again(key)
      write_key(key)
    end
    left_lanes[name] = nil
  end
end

-- Nothing of a lane starts for so many seconds, or longer if that was said before.
hold_key = function(queue, lane, seconds)
  local key = open_key(queue, lane, true)
  if now + seconds > key.held_until then
    key.held_until = now + seconds
    write_key(key)
  end
end
