#!lua flags=no-writes
-- audit: check the invariants of one piece of the store. Answers where to go on, '' if this part is
-- done, then what is wrong, as texts.
-- KEYS meta jobs bodies ids due held finished ready reserved waiting places lanes counts
-- KEYS children unfinished suspended awaits expiry rates queue_rates rate_index rated_jobs parked_jobs
-- KEYS parked_lines
-- USES clock layout job
-- ARGV 1 offset  2 part: the name of an index, "lanes" or "sums"  3 where to go on ('' at the beginning)
-- What holds for a job or a lane holds at every moment, so it may be looked at piece by piece while
-- jobs move; a piece is one moment. Sums over the whole store are compared in one moment, by numbers
-- that the server has at hand. One call is one bounded step, however many jobs there are.

local STRETCH = 1000
local LANES_AT_ONCE = 100
-- So many are counted one by one in a moment; of more only the sums are compared.
local COUNTED = 10000
local MOST = 100
-- migrate.lua puts one field into each hash that is none of its own.
local SENTINELS = 1
local part, from = ARGV[2], ARGV[3]
local findings, looked = { '' }, 0

local function report(text)
  if #findings <= MOST then findings[#findings + 1] = text end
end

-- Calls `visit` with each member of a piece, its id and its job.
local function visit_all(members, skip, visit)
  local ids = {}
  for n, member in ipairs(members) do ids[n] = sub(string.match(member, '[^%z]*$'), skip) end
  for n, record in ipairs(read(JOBS, ids)) do
    if record then visit(members[n], ids[n], decode(record))
    else report('job ' .. ids[n] .. ' is in an index but does not exist') end
  end
end

-- The next piece of an index in the order of texts.
local function walk(index, skip, visit)
  local first = from == '' and '-' or '(' .. from
  local members = call('ZRANGE', index, first, '+', 'BYLEX', 'LIMIT', 0, STRETCH)
  visit_all(members, skip, visit)
  if #members == STRETCH then findings[1] = members[STRETCH] end
end

local function lane_name(job)
  return job.queue .. '\0' .. job.lane
end

local function label_of(name)
  return 'lane "' .. string.match(name, '[^%z]*$') .. '" of queue ' .. string.match(name, '^[^%z]*')
end

local function expect_lane(job)
  if call('HEXISTS', LANES, lane_name(job)) == 0 then
    report(label_of(lane_name(job)) .. ' is unknown but has jobs')
  end
end

local function expect_place(job, id)
  if job.lane == '' then return end
  expect_lane(job)
  if not call('ZSCORE', PLACES, lane_name(job) .. '\0' .. job.order .. id) then
    report('job ' .. id .. ' has no place in lane "' .. job.lane .. '" of queue ' .. job.queue)
  end
end

local function expect_family(job, id)
  local parent, group = family_of(job.tail)
  if not call('ZSCORE', UNFINISHED, parent .. '\0' .. group .. '\0' .. id) then
    report('job ' .. id .. ' does not count as an unfinished child of ' .. parent)
  end
  if not call('ZSCORE', CHILDREN, parent .. '\0' .. id) then
    report('job ' .. id .. ' is not listed as a child of ' .. parent)
  end
end

local function expect_wait(job, id)
  if job.state ~= SCHEDULED then
    report('job ' .. id .. ' is suspended but has state ' .. job.state)
  elseif not call('ZSCORE', SUSPENDED, id) or call('HEXISTS', AWAITS, id) == 0 then
    report('job ' .. id .. ' is suspended but nobody knows what for')
  end
end

local function expect_rate(job, id)
  if not call('ZSCORE', RATED_JOBS, lane_name(job) .. '\0' .. id) then
    report('job ' .. id .. ' has a rate but is not listed with those of its lane')
  elseif call('HEXISTS', RATES, lane_name(job)) == 0 then
    report('job ' .. id .. ' has a rate but ' .. label_of(lane_name(job)) .. ' has none')
  end
end

-- A parked job has its place, and is found by those who look for its time. One that a program from before
-- layout 6 has tried again looks like a parked one if it holds its place.
local function expect_parked(job, id)
  local at = call('ZSCORE', PARKED_JOBS, id)
  if at and at ~= call('ZSCORE', DUE, id) or not at and not has(job, HOLD) then
    report('job ' .. id .. ' is parked but nobody knows until when')
  end
  if at and not call('ZSCORE', PARKED_LINES, lane_name(job) .. '\0' .. job.order .. id) then
    report('job ' .. id .. ' is parked but not listed with those of its lane')
  elseif at and call('HEXISTS', RATES, lane_name(job)) == 0 then
    report('job ' .. id .. ' is parked but nothing is kept of ' .. label_of(lane_name(job)))
  end
end

-- `job` is in a line of jobs that are not finished.
local function expect(job, id, state)
  if job.state ~= state then
    report('job ' .. id .. ' is listed as state ' .. state .. ' but has state ' .. job.state)
  end
  if has(job, CHILD) then expect_family(job, id) end
  if has(job, AWAITING) then expect_wait(job, id) end
  if has(job, EXPIRES) and not call('ZSCORE', EXPIRY, id) then
    report('job ' .. id .. ' has to start by a time but nobody knows which')
  end
  if has(job, RATED) then expect_rate(job, id) end
  if has(job, PARKED) and has(job, PINNED) and job.state == SCHEDULED then expect_parked(job, id) end
end

-- How many ready jobs without a pin have a place in a lane.
local function heads_of(name)
  local heads = 0
  local members = call('ZRANGE', PLACES, '[' .. name .. '\0', '(' .. name .. '\1', 'BYLEX')
  looked = looked + #members
  visit_all(members, 18, function(member, id, job)
    if job.state == PENDING and not has(job, PINNED) then heads = heads + 1 end
  end)
  return heads
end

-- The lowest priority of a lane in an index: that of the last, because better ones come first.
local function lowest(index, name)
  local last = call('ZRANGE', index, '(' .. name .. '\1', '[' .. name .. '\0', 'BYLEX', 'REV',
    'LIMIT', 0, 1)[1]
  return last and priority_of(sub(last, #name + 2)) or 1000
end

local function check_lane(name, kept)
  local label = label_of(name)
  local low, high = '[' .. name .. '\0', '(' .. name .. '\1'
  local width, used, waits, heads, floor = struct.unpack('<HIBIh', kept)
  local holders = call('ZLEXCOUNT', PLACES, low, high)
  local waiting = call('ZLEXCOUNT', WAITING, low, high)
  if used ~= holders then
    report(label .. ' counts ' .. used .. ' places but has ' .. holders)
  end
  if holders <= STRETCH and looked <= COUNTED then
    local ready = heads_of(name)
    if heads < ready or heads > used then
      report(label .. ' counts ' .. heads .. ' heads but has ' .. ready)
    end
  end
  if waits == 0 and waiting > 0 then
    report(label .. ' believes that nobody waits but has ' .. waiting)
  end
  if floor > math.min(lowest(PLACES, name), lowest(WAITING, name)) then
    report(label .. ' has a job below its floor')
  end
  if waiting > 0 and holders < width then
    report(label .. ' has a free place but somebody waits')
  end
  if holders + waiting == 0 then report('a lane is known but has no jobs: ' .. label) end
end

local function check_counts()
  local stored, found, sums = call('HGETALL', COUNTS), {}, { [SCHEDULED] = 0, [RUNNING] = 0 }
  local few = call('ZCARD', DUE) + call('ZCARD', HELD) <= COUNTED
  for state, index in pairs(few and { [SCHEDULED] = DUE, [RUNNING] = HELD } or {}) do
    visit_all(call('ZRANGE', index, 0, -1), 1, function(member, id, job)
      found[state .. job.queue] = (found[state .. job.queue] or 0) + 1
    end)
  end
  for i = 1, #stored, 2 do
    local state, number = tonumber(sub(stored[i], 1, 1)), tonumber(stored[i + 1])
    sums[state] = sums[state] + number
    if few and (found[stored[i]] or 0) ~= number then
      report('queue ' .. sub(stored[i], 2) .. ' counts ' .. number .. ' jobs in state '
        .. state .. ' but has ' .. (found[stored[i]] or 0))
    end
    found[stored[i]] = nil
  end
  for field, number in pairs(found) do
    report('queue ' .. sub(field, 2) .. ' has ' .. number .. ' jobs that are not counted')
  end
  if not few and (sums[SCHEDULED] ~= call('ZCARD', DUE) or sums[RUNNING] ~= call('ZCARD', HELD)) then
    report('queues count ' .. sums[SCHEDULED] .. ' scheduled and ' .. sums[RUNNING]
      .. ' running jobs but there are ' .. call('ZCARD', DUE) .. ' and ' .. call('ZCARD', HELD))
  end
end

local parts = {}

-- In the order of time. Those that are due meanwhile make others be passed over, none twice in a line.
function parts.due()
  local first = tonumber(from) or 0
  local members = call('ZRANGE', DUE, first, first + STRETCH - 1)
  visit_all(members, 1, function(member, id, job)
    expect(job, id, SCHEDULED)
    if has(job, PINNED) then expect_place(job, id) end
  end)
  if #members == STRETCH then findings[1] = tostring(first + STRETCH) end
end

function parts.ready()
  walk(READY, 18, function(member, id, job)
    expect(job, id, PENDING)
    if member ~= job.queue .. '\0' .. job.order .. id then
      report('job ' .. id .. ' is in the wrong place of the ready line')
    end
    expect_place(job, id)
  end)
end

local function reserved_place(job, id)
  return job.queue .. '\0' .. string.match(job.tail, '^[^%z]*') .. '\0' .. job.order .. id
end

function parts.reserved()
  walk(RESERVED, 18, function(member, id, job)
    expect(job, id, PENDING)
    if member ~= reserved_place(job, id) then
      report('job ' .. id .. ' is in the wrong place of the line of reserved jobs')
    end
    expect_place(job, id)
  end)
end

function parts.held()
  walk(HELD, 1, function(member, id, job)
    expect(job, id, RUNNING)
    if member ~= job.worker .. '\0' .. id then
      report('job ' .. id .. ' runs under another worker')
    end
    expect_place(job, id)
  end)
end

function parts.waiting()
  walk(WAITING, 18, function(member, id, job)
    expect(job, id, PENDING)
    if member ~= lane_name(job) .. '\0' .. job.order .. id then
      report('job ' .. id .. ' waits in the wrong place')
    end
    expect_lane(job)
  end)
end

function parts.places()
  walk(PLACES, 18, function(member, id, job)
    local ready = job.state == PENDING
      and (call('ZSCORE', READY, job.queue .. '\0' .. job.order .. id)
        or call('ZSCORE', RESERVED, reserved_place(job, id)))
    local held = job.state == RUNNING or job.state == SCHEDULED and has(job, PINNED) or ready
    if not held or member ~= lane_name(job) .. '\0' .. job.order .. id then
      report('a place is held by nobody: job ' .. id .. ' does not run and is not ready')
    end
  end)
end

function parts.children()
  walk(CHILDREN, 1, function(member, id, job)
    if not has(job, CHILD) or member ~= family_of(job.tail) .. '\0' .. id then
      report('job ' .. id .. ' is listed under a wrong parent')
    end
  end)
end

function parts.unfinished()
  walk(UNFINISHED, 1, function(member, id, job)
    if not has(job, CHILD) or job.state > RUNNING then
      report('an unfinished child is counted too much: job ' .. id)
    end
  end)
end

function parts.suspended()
  walk(SUSPENDED, 1, function(member, id, job)
    if not has(job, AWAITING) then
      report('a job awaits something but is not suspended: job ' .. id)
    end
  end)
end

function parts.lanes()
  local cursor, found = unpack(call('HSCAN', LANES, tonumber(from) or 0, 'COUNT', LANES_AT_ONCE))
  for i = 1, #found, 2 do
    if found[i] ~= '' then check_lane(found[i], found[i + 1]) end
  end
  if cursor ~= '0' then findings[1] = cursor end
end

function parts.sums()
  check_counts()
  if call('ZCARD', SUSPENDED) ~= call('HLEN', AWAITS) then
    report('a job awaits something but is not suspended')
  end
  if call('ZCARD', RATE_INDEX) ~= call('HLEN', RATES) + call('HLEN', QUEUE_RATES) then
    report('a rate is missing in the index by queue and lane')
  end
  local total = call('LLEN', FINISHED) - (call('HGET', META, 'outdated') or 0)
  for _, index in ipairs({ DUE, READY, RESERVED, WAITING, HELD }) do
    total = total + call('ZCARD', index)
  end
  if total ~= call('HLEN', JOBS) then
    report(call('HLEN', JOBS) .. ' jobs exist but ' .. total .. ' are in a line or finished')
  end
  if call('HLEN', BODIES) - SENTINELS ~= call('HLEN', JOBS) then report('a job has no body') end
  if call('ZCARD', IDS) ~= call('HLEN', JOBS) then report('a job is missing in the index by id') end
end

parts[part]()
return findings
