#!lua flags=no-writes
-- audit: check the invariants over the whole store in one moment. Answers what is wrong, as texts.
-- KEYS meta jobs bodies ids due held finished ready reserved waiting places lanes counts
-- KEYS children unfinished suspended awaits
-- USES clock layout job
-- ARGV 1 offset
-- Looks at every job that is not finished, so it keeps the server busy for some microseconds each;
-- finished ones are only counted, unless they are children.

local STRETCH = 1000
local MOST = 100
-- migrate.lua puts one field into each hash that is none of its own.
local SENTINELS = 1
local findings, found, lanes = {}, {}, {}
local children, suspended = 0, 0

local function report(text)
  if #findings < MOST then findings[#findings + 1] = text end
end

local function each(index, visit)
  local first = 0
  while true do
    local members = call('ZRANGE', index, first, first + STRETCH - 1)
    local ids = {}
    for n, member in ipairs(members) do ids[n] = string.match(member, '[^%z]*$') end
    if index == READY or index == RESERVED or index == WAITING then
      for n, member in ipairs(ids) do ids[n] = sub(member, 18) end
    end
    local records = read(JOBS, ids)
    for n, member in ipairs(members) do
      if records[n] then visit(member, ids[n], decode(records[n]))
      else report('job ' .. ids[n] .. ' is in an index but does not exist') end
    end
    if #members < STRETCH then return end
    first = first + STRETCH
  end
end

local function lane_of(job)
  local name = job.queue .. '\0' .. job.lane
  lanes[name] = lanes[name] or { used = 0, waiting = 0, heads = 0, floor = 1000 }
  lanes[name].floor = math.min(lanes[name].floor, priority_of(job.order))
  return lanes[name], name
end

local function hold(job, id)
  if job.lane == '' then return end
  local lane, name = lane_of(job)
  lane.used = lane.used + 1
  if job.state == PENDING and not has(job, PINNED) then lane.heads = lane.heads + 1 end
  if not call('ZSCORE', PLACES, name .. '\0' .. job.order .. id) then
    report('job ' .. id .. ' has no place in lane "' .. job.lane .. '" of queue ' .. job.queue)
  end
end

local function expect_family(job, id)
  local parent, group = family_of(job.tail)
  children = children + 1
  if not call('ZSCORE', UNFINISHED, parent .. '\0' .. group .. '\0' .. id) then
    report('job ' .. id .. ' does not count as an unfinished child of ' .. parent)
  end
  if not call('ZSCORE', CHILDREN, parent .. '\0' .. id) then
    report('job ' .. id .. ' is not listed as a child of ' .. parent)
  end
end

local function expect_wait(job, id)
  suspended = suspended + 1
  if job.state ~= SCHEDULED then
    report('job ' .. id .. ' is suspended but has state ' .. job.state)
  elseif not call('ZSCORE', SUSPENDED, id) or call('HEXISTS', AWAITS, id) == 0 then
    report('job ' .. id .. ' is suspended but nobody knows what for')
  end
end

-- `job` is in a line of jobs that are not finished.
local function expect(job, id, state)
  if job.state ~= state then
    report('job ' .. id .. ' is listed as state ' .. state .. ' but has state ' .. job.state)
  end
  if has(job, CHILD) then expect_family(job, id) end
  if has(job, AWAITING) then expect_wait(job, id) end
end

each(DUE, function(member, id, job)
  expect(job, id, SCHEDULED)
  found[SCHEDULED .. job.queue] = (found[SCHEDULED .. job.queue] or 0) + 1
  if has(job, PINNED) then hold(job, id) end
end)
each(READY, function(member, id, job)
  expect(job, id, PENDING)
  if member ~= job.queue .. '\0' .. job.order .. id then
    report('job ' .. id .. ' is in the wrong place of the ready line')
  end
  hold(job, id)
end)
each(RESERVED, function(member, id, job)
  expect(job, id, PENDING)
  local task = string.match(job.tail, '^[^%z]*')
  if member ~= job.queue .. '\0' .. task .. '\0' .. job.order .. id then
    report('job ' .. id .. ' is in the wrong place of the line of reserved jobs')
  end
  hold(job, id)
end)
each(HELD, function(member, id, job)
  expect(job, id, RUNNING)
  if member ~= job.worker .. '\0' .. id then
    report('job ' .. id .. ' runs under another worker')
  end
  found[RUNNING .. job.queue] = (found[RUNNING .. job.queue] or 0) + 1
  hold(job, id)
end)
each(WAITING, function(member, id, job)
  expect(job, id, PENDING)
  if member ~= job.queue .. '\0' .. job.lane .. '\0' .. job.order .. id then
    report('job ' .. id .. ' waits in the wrong place')
  end
  local lane = lane_of(job)
  lane.waiting = lane.waiting + 1
end)

each(CHILDREN, function(member, id, job)
  if not has(job, CHILD) or member ~= family_of(job.tail) .. '\0' .. id then
    report('job ' .. id .. ' is listed under a wrong parent')
  end
end)
if children ~= call('ZCARD', UNFINISHED) then report('an unfinished child is counted too much') end
if suspended ~= call('ZCARD', SUSPENDED) or suspended ~= call('HLEN', AWAITS) then
  report('a job awaits something but is not suspended')
end

local places, known = 0, 0
for name, lane in pairs(lanes) do
  places = places + lane.used
  local label = 'lane ' .. string.gsub(name, '%z', ' of queue ', 1)
  local kept = call('HGET', LANES, name)
  if kept then
    local width, used, waits, heads, floor = struct.unpack('<HIBIh', kept)
    if used ~= lane.used then
      report(label .. ' counts ' .. used .. ' places but has ' .. lane.used)
    end
    if heads < lane.heads or heads > used then
      report(label .. ' counts ' .. heads .. ' heads but has ' .. lane.heads)
    end
    if waits == 0 and lane.waiting > 0 then
      report(label .. ' believes that nobody waits but has ' .. lane.waiting)
    end
    if floor > lane.floor then report(label .. ' has a job below its floor') end
    if lane.waiting > 0 and lane.used < width then
      report(label .. ' has a free place but somebody waits')
    end
  else
    report(label .. ' is unknown but has jobs')
  end
  known = known + 1
end
if places ~= call('ZCARD', PLACES) then report('a place is held by nobody') end
if known ~= call('HLEN', LANES) - SENTINELS then report('a lane is known but has no jobs') end

local stored = call('HGETALL', COUNTS)
for i = 1, #stored, 2 do
  if (found[stored[i]] or 0) ~= tonumber(stored[i + 1]) then
    report('queue ' .. sub(stored[i], 2) .. ' counts ' .. stored[i + 1] .. ' jobs in state '
      .. sub(stored[i], 1, 1) .. ' but has ' .. (found[stored[i]] or 0))
  end
  found[stored[i]] = nil
end
for field, number in pairs(found) do
  report('queue ' .. sub(field, 2) .. ' has ' .. number .. ' jobs that are not counted')
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
return findings
