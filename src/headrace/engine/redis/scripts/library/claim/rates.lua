-- rates: how fast jobs of a lane or a queue may start, and holds.
-- KEYS jobs ready due rates queue_rates rate_index job_rates rated_jobs parked_jobs parked_lines
-- Needs clock layout job lanes.
--   rates        of each lane that has a rate or a hold what is kept of it
--   queue_rates  the same of each queue, by its name
--   rate_index   queue, zero, lane ('' the queue itself) of both, with score 0
--   job_rates    of each job with a rate: starts, seconds, burst; its cost; 1 if retries count
--   rated_jobs   lane, zero, id of those that have not finished, with score 0
--   parked_jobs  ids of parked jobs by their time, as in `due`
--   parked_lines lane, zero, order, id of parked jobs, with score 0
-- What is kept is: starts, seconds and burst that the newest job says (0: nothing), the same of an
-- operator, which counts first; `tat`, when all that has started is paid for; until when nothing starts;
-- of the last parked job its time, and when all is paid for after it; when the last start was counted, by
-- which a clock that went back is found out; and the order of the last parked job.
-- A lane of which jobs with a rate have not finished is in `rates`, so a claim that finds that empty, and
-- `queue_rates`, need not know of any of this.

local KEPT_RATE = '<ddIddIddddd'
-- Where the order begins in it.
local LINE_LAST = 81
local JOB_RATE = '<ddIdB'
-- A clock that went back by more than this is set right; by less, nobody waits for longer than this.
local CLOCK_STEP = 1
-- Where jobs change the rate of a lane, so many that are parked are looked at again at once. The others are
-- when their turn comes: claims see to the best one that is parked.
local LOOK_AGAIN_AT_MOST = 1000
local rate_keys = {}
-- Those that a claim has to write.
local changed_keys = {}
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

-- If the clock has gone back since the last start was counted, that counts as of now: what it owes does not
-- grow by it.
local function set_clock(key)
  local ahead = key.counted_at - now
  if ahead <= CLOCK_STEP then return end
  key.tat, key.line_at, key.line_tat = key.tat - ahead, key.line_at - ahead, key.line_tat - ahead
  key.counted_at, key.set_back = now, true
  changed_keys[key.name] = key
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
      local a, b, c, d, e, f, tat, held_until, line_at, line_tat, counted_at =
        struct.unpack(KEPT_RATE, kept)
      key = {
        name = name, queue = queue, lane = lane, by_jobs = as_rate(a, b, c),
        by_operator = as_rate(d, e, f), tat = tat, held_until = held_until, line_at = line_at,
        line_tat = line_tat, counted_at = counted_at, line_last = sub(kept, LINE_LAST),
      }
      set_clock(key)
    end
    rate_keys[name] = key
  end
  if not key and new then
    key = {
      name = name, queue = queue, lane = lane, tat = 0, held_until = 0, line_at = 0, line_tat = 0,
      counted_at = 0, line_last = '',
    }
    rate_keys[name] = key
  end
  return key
end

local function rate_of(key)
  return key.by_operator or key.by_jobs
end

local function has_parked(key)
  return call('ZLEXCOUNT', PARKED_LINES, '[' .. key.name .. '\0', '(' .. key.name .. '\1') > 0
end

-- Keep it, or forget it if nobody says anything any more and nobody is parked by it.
local function write_key(key)
  local hash, field = RATES, key.name
  if key.lane == '' then hash, field = QUEUE_RATES, key.queue end
  if not rate_of(key) and key.held_until <= now and not has_parked(key) then
    call('HDEL', hash, field)
    call('ZREM', RATE_INDEX, key.name)
    rate_keys[key.name] = false
    return
  end
  local none = { starts = 0, seconds = 0, burst = 0 }
  local one, other = key.by_jobs or none, key.by_operator or none
  local record = struct.pack(KEPT_RATE, one.starts, one.seconds, one.burst, other.starts,
    other.seconds, other.burst, key.tat, key.held_until, key.line_at, key.line_tat, key.counted_at)
    .. key.line_last
  if call('HSET', hash, field, record) == 1 then call('ZADD', RATE_INDEX, 0, key.name) end
end

-- When all that has started is paid for. No burst follows a hold.
local function paid_at(key, rate)
  if key.held_until == 0 then return key.tat end
  return math.max(key.tat, key.held_until + (rate.burst - 1) * rate.interval)
end

local function opens_by(rate, paid, cost)
  return paid - math.max(rate.burst - cost, 0) * rate.interval
end

-- From when on a job may start; without a rate: one that does not count.
local function opens_at(key, rate, cost)
  if not rate then return key.held_until end
  return math.max(opens_by(rate, paid_at(key, rate), cost), key.held_until)
end

-- The rate that a start of a job counts by; none if it does not. `said`: the job has a rate.
local function counted_by(key, said, attempt, count_retries)
  if not key.by_operator and not said then return nil end
  if said and attempt > 0 and count_retries == 0 then return nil end
  return rate_of(key)
end

-- What a job says of its cost, and of its retries.
local function cost_of(id, said)
  if not said then return 1, 1 end
  local _, _, _, cost, count_retries = struct.unpack(JOB_RATE, call('HGET', JOB_RATES, id))
  return cost, count_retries
end

-- The best parked job of a lane from a place on: its id, the job, and its place. One that an older program
-- has moved is forgotten.
local function best_parked(key, from)
  while true do
    local member = call('ZRANGE', PARKED_LINES, from, '(' .. key.name .. '\1', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return nil end
    local id = sub(member, #key.name + 19)
    local record = call('HGET', JOBS, id)
    local job = record and decode(record)
    if job and job.state == SCHEDULED and has(job, PARKED) then return id, job, member end
    call('ZREM', PARKED_LINES, member)
  end
end

-- From when on a parked job may start, the rate that it counts by, and its cost.
local function opens_for(key, id, job)
  local cost, count_retries = cost_of(id, has(job, RATED))
  local rate = counted_by(key, has(job, RATED), job.attempt, count_retries)
  return opens_at(key, rate, cost), rate, cost
end

-- A parked job has its time at which it may start, if that was later. Answers whether it was.
local function hurry_parked(id, job, at)
  if job.run_at <= at then return false end
  job.run_at = at
  call('HSET', JOBS, id, encode(job))
  call('ZADD', DUE, at, id)
  call('ZADD', PARKED_JOBS, at, id)
  return true
end

local function forget_parked(job, id)
  call('ZREM', PARKED_JOBS, id)
  call('ZREM', PARKED_LINES, job.queue .. '\0' .. job.lane .. '\0' .. job.order .. id)
end

-- Has claims look again at the best parked jobs of a key, so many or all, of which there are at most as
-- many as the lane is wide. The caller writes the key and the counts. Records have to be written before.
local function look_again(key, at_most)
  local members = {}
  if key.lane ~= '' then
    members = call('ZRANGE', PARKED_LINES, '[' .. key.name .. '\0', '(' .. key.name .. '\1', 'BYLEX',
      'LIMIT', 0, at_most or -1)
  end
  if #members ~= at_most then key.line_at = 0 end
  local ids, again, jobs, ready = {}, {}, {}, {}
  for n, member in ipairs(members) do ids[n] = sub(member, #key.name + 19) end
  for n, record in ipairs(read(JOBS, ids)) do
    local job = record and decode(record)
    if job and job.state == SCHEDULED and has(job, PARKED) then
      job.state, job.run_at = PENDING, now
      again[#again + 1] = ids[n]
      put(ready, key.queue .. '\0' .. job.order .. ids[n])
      jobs[2 * #again - 1], jobs[2 * #again] = ids[n], encode(job)
    end
  end
  write('ZREM', PARKED_LINES, members)
  write('HSET', JOBS, jobs)
  write('ZREM', DUE, again)
  write('ZREM', PARKED_JOBS, again)
  write('ZADD', READY, ready)
  if #again > 0 then count(scheduled, key.queue, -#again) end
  made_ready = made_ready + #again
end

-- Sets what jobs and an operator say. What has started counts by the new rate, and who is parked waits as
-- long as that says.
local function change_rate(key, by_jobs, by_operator, at_most)
  local before = rate_of(key)
  key.by_jobs, key.by_operator = by_jobs, by_operator
  local after = rate_of(key)
  if not is_same_rate(before, after) then
    if before and after then
      for _, name in ipairs({ 'tat', 'line_at', 'line_tat' }) do
        key[name] = now + math.max(key[name] - now, 0) / before.interval * after.interval
      end
    end
    look_again(key, at_most)
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
    if not is_same_rate(key.by_jobs, rate) then
      change_rate(key, rate, key.by_operator, LOOK_AGAIN_AT_MOST)
    end
  end
end

-- A job is run again: it brings its rate along if that was forgotten.
local function bring_rate_back(job, id)
  call('ZADD', RATED_JOBS, 0, job.queue .. '\0' .. job.lane .. '\0' .. id)
  local key = open_key(job.queue, job.lane, true)
  if not key.by_jobs then
    local rate = as_rate(struct.unpack(JOB_RATE, call('HGET', JOB_RATES, id)))
    change_rate(key, rate, key.by_operator, LOOK_AGAIN_AT_MOST)
  end
end

leave_rates = function(job, id)
  if has(job, RATED) then call('ZREM', RATED_JOBS, job.queue .. '\0' .. job.lane .. '\0' .. id) end
  if has(job, PARKED) then
    forget_parked(job, id)
    left_lanes[job.queue .. '\0' .. job.lane] = job
  end
end

-- The best of the others has its time; the claims that start it see to the next.
move_up = function()
  for name, job in pairs(left_lanes) do
    local key = open_key(job.queue, job.lane)
    if key then
      local id, parked_job = best_parked(key, '[' .. name .. '\0')
      if not id then
        key.line_at = 0
      elseif hurry_parked(id, parked_job, math.max(opens_for(key, id, parked_job), now)) then
        made_ready = made_ready + 1
      end
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
