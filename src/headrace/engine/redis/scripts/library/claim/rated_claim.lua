-- rated_claim: which ready jobs may start where there are rates or holds, and which are parked.
-- KEYS jobs ready reserved due expiry workers claimants parked_jobs parked_lines
-- Needs expiry, rates and claim, whose `take` it replaces. A job that may not start yet is scheduled for the
-- time at which it may, pinned to its place. Each parked job of a lane has a time of its own, one after the
-- other; who is better than the last of them asks for the next one. The claim that finds a job when its
-- time has come asks again. A queue that lets nobody start is passed over.

-- So many ready jobs a claim looks at, at most; and so many that are due again it makes ready.
local LOOK_AT_MOST = 1000
-- So many that it leaves for workers with free slots it passes over.
local LEAVE_AT_MOST = 200
-- Lines are read in pieces of so many at least: some of them are not taken.
local LEAST_PIECE = 50
local looked, passed, parked_some = 0, 0, false
-- Whether jobs were taken that were parked: they come behind the others, out of order.
local took_parked = false
-- How many jobs with a rate may be leased yet; the caller sets it.
local free_slots = math.huge
local closed, opens_next = {}, math.huge
-- Keys that were looked at, and those of which ready jobs are left to others.
local looked_keys, left_keys = {}, {}
-- The worker that claims, and the tasks that it knows once they were looked up.
local claiming, known
-- Of so many that are parked a claim looks for the first of its own queues.
local NEXT_AT_MOST = 100

local function start(key, rate, cost)
  if rate then
    key.tat, key.counted_at = math.max(paid_at(key, rate), now) + cost * rate.interval, now
    changed_keys[key.name] = key
  end
end

-- When a job may start that has this place in the order; not after now: at once.
local function slot(key, order, rate, cost)
  local opens = opens_at(key, rate, cost)
  if not rate then return opens end
  local line = key.line_at > now
  local behind = line and order > key.line_last
  if opens <= now and not behind and not key.blocked then return opens end
  -- From now on all behind this one wait, too.
  key.blocked = true
  if line and not behind then
    local at = math.max(opens, key.front or 0, now)
    key.front = at + cost * rate.interval
    return at
  end
  local paid = line and key.line_tat or paid_at(key, rate)
  local at = math.max(opens_by(rate, paid, cost), key.held_until, key.line_at)
  key.line_tat = math.max(paid, at) + cost * rate.interval
  key.line_at, key.line_last = at, order
  changed_keys[key.name] = key
  return at
end

local parked = { jobs = {}, times = {}, lines = {} }

local function park(record, id, at)
  local job = decode(record)
  if not has(job, PINNED) then
    local lane = open_lane(job.queue .. '\0' .. job.lane, job.queue, job.width)
    lane.heads = lane.heads - 1
    job.completed = UNPINNED
  end
  mark(job, PINNED, true)
  mark(job, PARKED, true)
  job.state, job.run_at = SCHEDULED, at
  count(scheduled, job.queue, 1)
  made_ready, parked_some = made_ready - 1, true
  local n = #parked.jobs
  parked.jobs[n + 1], parked.jobs[n + 2] = id, encode(job)
  parked.times[n + 1], parked.times[n + 2] = at, id
  put(parked.lines, job.queue .. '\0' .. job.lane .. '\0' .. job.order .. id)
end

-- Whether the worker runs such jobs, as far as it has told. One that it would give back would have used a
-- start.
local function knows(task)
  if not known then
    local worker = call('HGET', WORKERS, claiming)
    known = known_tasks(worker, string.match(worker, '^[^%z]+'))
  end
  return known[task]
end

-- Leaves a ready job for workers that know its task, as if it had been given back.
local function reserve(queue, task, order, id)
  local line = queue .. '\0' .. task
  local there = call('ZRANGE', RESERVED, '[' .. line .. '\0', '(' .. line .. '\1', 'BYLEX', 'LIMIT', 0, 1)
  if #there == 0 then call('DEL', CLAIMANTS) end
  call('ZADD', RESERVED, 0, line .. '\0' .. order .. id)
  left_for_others = left_for_others + 1
end

-- Whether the time of a job to start is over.
local function is_late(flags, attempt, id)
  return bit.band(flags, EXPIRES) ~= 0 and attempt == 0
    and tonumber(call('ZSCORE', EXPIRY, id) or LATE) <= now
end

-- Answers whether a job leaves its line, and whether that is to be leased. One whose time to start is over
-- is taken: `lease` finds it out.
local function decide(order, id, record, reserved)
  local _, flags, _, _, attempt = unpack_record(NUMBERS, record)
  local queue, lane, task = unpack_record('sss', record, QUEUE)
  if is_late(flags, attempt, id) then return true, true end
  local said = bit.band(flags, RATED) ~= 0
  local cost, count_retries = cost_of(id, said)
  local whole = open_key(queue, '')
  local queue_opens = whole and opens_at(whole, rate_of(whole), cost) or 0
  if queue_opens > now then
    closed[queue], opens_next = true, math.min(opens_next, queue_opens)
    return false
  end
  local key = lane ~= '' and open_key(queue, lane)
  local rate = key and counted_by(key, said, attempt, count_retries)
  local counted = rate or whole and rate_of(whole)
  if key then looked_keys[key.name] = key end
  if counted and not reserved and not knows(task) then
    reserve(queue, task, order, id)
    return true, false
  end
  if counted and free_slots <= 0 then
    if key then left_keys[key.name] = true end
    passed = passed + 1
    return false
  end
  if key then
    local at = slot(key, order, rate, cost)
    if at > now then
      park(record, id, at)
      return true, false
    end
    start(key, rate, cost)
  end
  if whole then start(whole, rate_of(whole), cost) end
  if counted then free_slots = free_slots - 1 end
  return true, true
end

-- The record of the job that a line is at; those of a piece are read together.
local function record_at(line)
  if line.read ~= line.members then
    local ids = {}
    for n, member in ipairs(line.members) do ids[n] = sub(member, line.skip + 17) end
    line.read, line.records = line.members, read(JOBS, ids)
  end
  return line.records[line.at]
end

local function write_parked(gone)
  for index, members in pairs(gone) do write('ZREM', index, members) end
  write('HSET', JOBS, parked.jobs)
  write('ZADD', DUE, parked.times)
  write('ZADD', PARKED_JOBS, parked.times)
  write('ZADD', PARKED_LINES, parked.lines)
  parked = { jobs = {}, times = {}, lines = {} }
end

-- Starts the best that are parked of a lane, as far as they may start now, up to `limit` taken, and sees
-- that the next has a time that is not later than it may: those before it may have been cancelled, or the
-- rate may have become faster.
local function see_to_line(key, taken, limit)
  local from = '[' .. key.name .. '\0'
  local id, job, member = best_parked(key, from)
  if not id and key.line_at ~= 0 then
    key.line_at, changed_keys[key.name] = 0, key
  end
  while id do
    if not is_late(job.flags, job.attempt, id) then
      local opens, rate, cost = opens_for(key, id, job)
      local whole = open_key(key.queue, '')
      if opens > now or #taken >= limit or free_slots <= 0 or closed[key.queue]
        or not knows(string.match(job.tail, '^[^%z]*'))
        or whole and opens_at(whole, rate_of(whole), cost) > now then
        hurry_parked(id, job, math.max(opens, now))
        return
      end
      start(key, rate, cost)
      if whole then start(whole, rate_of(whole), cost) end
      free_slots = free_slots - 1
      forget_parked(job, id)
      call('ZREM', DUE, id)
      job.run_at = math.min(job.run_at, now)
      call('HSET', JOBS, id, encode(job))
      count(scheduled, key.queue, -1)
      count(running, key.queue, 1)
      made_ready, took_parked = made_ready + 1, true
      taken[#taken + 1] = id
    end
    id, job, member = best_parked(key, '(' .. member)
  end
end

take = function(worker_id, claimant, name, named, limit)
  claiming = worker_id
  local fronts = open_lines(worker_id, claimant, name, named, math.max(limit, LEAST_PIECE))
  local taken, gone = {}, { [READY] = {}, [RESERVED] = {} }
  while #taken < limit and #fronts > 0 and looked < LOOK_AT_MOST and passed < LEAVE_AT_MOST do
    local best = 1
    for i = 2, #fronts do
      if fronts[i].order < fronts[best].order then best = i end
    end
    local line = fronts[best]
    local member, leaves, leased = line.members[line.at], false, false
    local id = sub(member, line.skip + 17)
    if not closed[line.queue] then
      looked = looked + 1
      leaves, leased = decide(line.order, id, record_at(line), line.index == RESERVED)
    end
    if leaves then gone[line.index][#gone[line.index] + 1] = member end
    if leased then
      count(running, line.queue, 1)
      taken[#taken + 1] = id
    end
    if closed[line.queue] or not advance(line) then table.remove(fronts, best) end
  end
  write_parked(gone)
  -- Ready jobs that nobody has looked at may be better than those that are parked.
  if looked >= LOOK_AT_MOST or passed >= LEAVE_AT_MOST then limit = 0 end
  for name, key in pairs(looked_keys) do
    if rate_of(key) and not left_keys[name] then see_to_line(key, taken, limit) end
  end
  looked_keys = {}
  for name, key in pairs(changed_keys) do
    write_key(key)
    changed_keys[name] = nil
  end
  return taken
end

-- Makes parked jobs ready whose time has come. One that an older program has moved is forgotten.
local function make_parked_ready()
  local ids = call('ZRANGE', PARKED_JOBS, '-inf', now, 'BYSCORE', 'LIMIT', 0, LOOK_AT_MOST)
  local due, jobs, members = {}, {}, {}
  for n, record in ipairs(read(JOBS, ids)) do
    local job = record and decode(record)
    if job and job.state == SCHEDULED and has(job, PARKED) then
      job.state = PENDING
      members[#members + 1] = job.queue .. '\0' .. job.lane .. '\0' .. job.order .. ids[n]
      due[#due + 1] = ids[n]
      jobs[2 * #due - 1], jobs[2 * #due] = ids[n], encode(job)
      count(scheduled, job.queue, -1)
      add_ready(job.queue, job.order .. ids[n])
    end
  end
  write('ZREM', PARKED_JOBS, ids)
  write('ZREM', PARKED_LINES, members)
  write('ZREM', DUE, due)
  write('HSET', JOBS, jobs)
  write_lines()
end

-- When the next parked job of some queues (nil: all) may start; too early if very many of others come before
-- it.
local function next_parked(named)
  local first = call('ZRANGE', PARKED_JOBS, 0, named and NEXT_AT_MOST - 1 or 0, 'WITHSCORES')
  if not named or #first == 0 then return tonumber(first[2] or math.huge) end
  local serves, ids = {}, {}
  for _, queue in ipairs(named) do serves[queue] = true end
  for n = 1, #first, 2 do ids[#ids + 1] = first[n] end
  for n, record in ipairs(read(JOBS, ids)) do
    if record and serves[unpack_record('s', record, QUEUE)] then return tonumber(first[2 * n]) end
  end
  return #ids == NEXT_AT_MOST and tonumber(first[#first]) or math.huge
end

-- In how many seconds one may start that has to wait ('' none).
local function next_start(named)
  if parked_some and looked >= LOOK_AT_MOST then return '0' end
  local at = math.min(opens_next, next_parked(named))
  return at < math.huge and string.format('%.6f', math.max(0, at - now)) or ''
end
