-- lanes: who has a place in a lane, who waits for one.
-- KEYS jobs ready reserved waiting places lanes admitted
-- A lane is queue, zero byte, name. Members sort by text, all with score 0:
--   ready    queue, zero, order, id   may be claimed now
--   reserved queue, zero, task, zero, order, id   the same, by workers that know its task
--   waiting  lane, zero, order, id    waits for a place
--   places   lane, zero, order, id    has one: ready, running, or pinned by a retry that holds it
-- `lanes` has of each: its width; how many places are used; `waits`, 0 if surely nobody waits;
-- `heads`, at least as many as are ready and not pinned (a better one that waits takes the place of
-- the worst head); and `floor`, the lowest priority that came since the lane was empty: who comes
-- last and is not above it beats nobody, so nobody has to look. A lane with nobody is forgotten.
-- A place that goes from one job to the next changes none of these, so nothing has to be written.
-- `admitted` has of each job that waited for a place when it got the last one.
-- Names contain no byte below 32, so everything of a lane lies between lane+zero and lane+one.
-- Scripts run alone, so counting places and giving one away cannot be torn apart.

local LANE = '<HIBIh'
-- Claims count the heads of wider lanes only: in a narrow one few places have to be looked at.
local NARROW = 20
local opened = {}
local made_ready = 0
-- Changes are collected and written together: one call per job and index would double the cost.
local lines = {
  ready = {}, reserved = {}, entered = {}, left = {}, waiting = {}, promoted = {}, admitted = {},
}
-- Jobs that began to wait in this call: one that gets a place in the same call has not waited.
local just_came = {}
local admission_time
-- What library/claim/rates.lua adds: a job with a rate has ended or a parked one is not parked any more; those
-- behind such jobs move up; a lane is held. Where it is not linked, no job has a rate.
local leave_rates, move_up, hold_key

local function write_lines()
  write('ZREM', PLACES, lines.left)
  write('ZREM', WAITING, lines.promoted)
  write('ZADD', WAITING, lines.waiting)
  write('ZADD', PLACES, lines.entered)
  write('ZADD', READY, lines.ready)
  write('ZADD', RESERVED, lines.reserved)
  write('HSET', ADMITTED, lines.admitted)
  for name, list in pairs(lines) do
    if #list > 0 then lines[name] = {} end
  end
end

local function put(list, member)
  local n = #list
  list[n + 1], list[n + 2] = 0, member
end

-- A lane whose record is not read yet. `width` counts only if nobody is in it. `change` is for the
-- caller, who counts what to do when it is read.
local function name_lane(name, queue, width)
  local lane = opened[name]
  if not lane then
    lane = {
      name = name, queue = queue, width = width, used = 0, waits = 0, heads = 0, floor = 1000,
      unread = true, kept = false, change = 0,
    }
    opened[name] = lane
  end
  return lane
end

local function look_up(lane, kept)
  if lane.unread then
    if kept then
      lane.width, lane.used, lane.waits, lane.heads, lane.floor = struct.unpack(LANE, kept)
    end
    lane.unread, lane.kept = false, kept
  end
  return lane
end

-- The lane as it is now.
local function open_lane(name, queue, width)
  local lane = name_lane(name, queue, width)
  return lane.unread and look_up(lane, call('HGET', LANES, name)) or lane
end

-- Many at once that have been named.
local function open_lanes(lanes)
  local names = {}
  for n = 1, #lanes do names[n] = lanes[n].name end
  for n, kept in ipairs(read(LANES, names)) do look_up(lanes[n], kept) end
end

local function write_lanes()
  local kept, gone = {}, {}
  for name, lane in pairs(opened) do
    if lane.used == 0 and lane.waits == 0 then
      gone[#gone + 1] = name
    else
      local record = struct.pack(LANE, lane.width, lane.used, lane.waits,
        math.min(lane.heads, lane.used), lane.floor)
      if record ~= lane.kept then
        local n = #kept
        kept[n + 1], kept[n + 2] = name, record
      end
    end
  end
  write('HSET', LANES, kept)
  write('HDEL', LANES, gone)
end

local function add_ready(queue, place)
  made_ready = made_ready + 1
  put(lines.ready, queue .. '\0' .. place)
end

-- Where a reserved job is; its texts that follow the lane begin with the task.
local function reserved_member(job, id)
  return job.queue .. '\0' .. string.match(job.tail, '^[^%z]*') .. '\0' .. job.order .. id
end

-- A ready job leaves the line that it is in.
local function leave_ready(queue, place)
  if call('ZREM', READY, queue .. '\0' .. place) == 0 then
    local id = sub(place, 18)
    call('ZREM', RESERVED, reserved_member(decode(call('HGET', JOBS, id)), id))
  end
end

-- `member` is the job's place in line, as `waiting` and `places` have it.
local function enter(lane, member)
  lane.used, lane.heads = lane.used + 1, lane.heads + 1
  put(lines.entered, member)
  add_ready(lane.queue, sub(member, #lane.name + 2))
end

local function wait(lane, member)
  lane.waits, just_came[member] = 1, true
  put(lines.waiting, member)
end

-- Give free places to those who wait, best first.
local function fill(lane)
  local free = lane.width - lane.used
  if free <= 0 or lane.waits == 0 then return end
  if #lines.waiting > 0 then write_lines() end
  local name = lane.name
  local next = call('ZRANGE', WAITING, '[' .. name .. '\0', '(' .. name .. '\1', 'BYLEX', 'LIMIT',
    0, free)
  for i = 1, #next do
    lines.promoted[#lines.promoted + 1] = next[i]
    if not just_came[next[i]] then
      local n = #lines.admitted
      admission_time = admission_time or struct.pack('<d', now)
      lines.admitted[n + 1], lines.admitted[n + 2] = sub(next[i], #name + 19), admission_time
    end
    enter(lane, next[i])
  end
  if #next < free then lane.waits = 0 end
end

-- The worst head of the lane, if `better` beats it. Running and pinned ones are passed over:
-- there are at most `width` of them, and only a job of higher priority ever looks.
local function worst_head(lane, better)
  local name = lane.name
  local from, to = '(' .. name .. '\1', '(' .. better
  while true do
    local members = call('ZRANGE', PLACES, from, to, 'BYLEX', 'REV', 'LIMIT', 0, 20)
    local ids = {}
    for i = 1, #members do ids[i] = sub(members[i], #name + 19) end
    for i, record in ipairs(read(JOBS, ids)) do
      local state, flags = unpack_record('<BB', record)
      if state == PENDING and bit.band(flags, PINNED) == 0 then return members[i] end
    end
    if #members < 20 then return nil end
    from = '(' .. members[20]
  end
end

-- Fill, then put back heads that somebody who waits beats. Records have to be written before.
-- A lane that was made narrower may have too many heads: then more are put back than let in.
local function admit(lane)
  fill(lane)
  local name = lane.name
  while lane.waits > 0 and lane.heads > 0 do
    write_lines()
    local best = call('ZRANGE', WAITING, '[' .. name .. '\0', '(' .. name .. '\1', 'BYLEX', 'LIMIT',
      0, 1)[1]
    local beaten = best and worst_head(lane, best)
    if not beaten then return end
    call('ZREM', PLACES, beaten)
    leave_ready(lane.queue, sub(beaten, #name + 2))
    made_ready = made_ready - 1
    lane.used, lane.heads = lane.used - 1, lane.heads - 1
    wait(lane, beaten)
    fill(lane)
  end
end

-- A job becomes pending. Answers its lane if that has to be admitted afterwards. Only a new one sets
-- the width of a lane that somebody is in.
local function make_pending(job, id, new)
  job.state = PENDING
  if job.lane == '' or has(job, PINNED) then
    add_ready(job.queue, job.order .. id)
  else
    local lane = open_lane(job.queue .. '\0' .. job.lane, job.queue, job.width)
    if new then lane.width = job.width end
    lane.floor = math.min(lane.floor, priority_of(job.order))
    wait(lane, lane.name .. '\0' .. job.order .. id)
    return lane
  end
end
