-- lanes: who has a place in a lane, who waits for one.
-- KEYS ready waiting places lanes
-- A lane is queue, zero byte, name. Members sort by text, all with score 0:
--   ready    queue, zero, order, id          may be claimed now
--   waiting  lane, zero, order, id           waits for a place
--   places   lane, zero, "r" or "p", order, id
--            r: ready and may be beaten; p: running, or pinned by a retry that holds its place
-- Names contain no byte below 32, so everything of a lane lies between lane+zero and lane+one.
-- Scripts run alone, so counting places and giving one away cannot be torn apart.

local made_ready = 0

local function bounds(prefix)
  return '[' .. prefix .. '\0', '(' .. prefix .. '\1'
end

local function lane_of(job)
  return job.queue .. '\0' .. job.lane
end

local function place(job, id, kind)
  return lane_of(job) .. '\0' .. kind .. job.order .. id
end

local function add_ready(queue, place_in_line)
  made_ready = made_ready + 1
  call('ZADD', READY, 0, queue .. '\0' .. place_in_line)
end

local function promote(lane, member)
  local place_in_line = sub(member, #lane + 2)
  call('ZREM', WAITING, member)
  call('ZADD', PLACES, 0, lane .. '\0r' .. place_in_line)
  add_ready(string.match(lane, '^[^%z]+'), place_in_line)
end

-- Give free places to those who wait, best first; forget a lane that has nobody left.
local function fill(lane, width)
  local known = call('HGET', LANES, lane)
  if known then width = tonumber(known) else call('HSET', LANES, lane, width) end
  local low, high = bounds(lane)
  local used = call('ZLEXCOUNT', PLACES, low, high)
  if used >= width then return end
  local next = call('ZRANGE', WAITING, low, high, 'BYLEX', 'LIMIT', 0, width - used)
  for i = 1, #next do promote(lane, next[i]) end
  if used + #next == 0 then call('HDEL', LANES, lane) end
end

-- Fill, then put back ready heads that somebody who waits beats.
local function admit(lane, width)
  fill(lane, width)
  local low, high = bounds(lane)
  while true do
    local best = call('ZRANGE', WAITING, low, high, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not best then return end
    local worst = call('ZRANGE', PLACES, '(' .. lane .. '\0s', '[' .. lane .. '\0r', 'BYLEX', 'REV',
      'LIMIT', 0, 1)[1]
    if not worst then return end
    local arriving, beaten = sub(best, #lane + 2), sub(worst, #lane + 3)
    if sub(arriving, 1, 17) > sub(beaten, 1, 17) then return end
    call('ZREM', PLACES, worst)
    call('ZREM', READY, string.match(lane, '^[^%z]+') .. '\0' .. beaten)
    made_ready = made_ready - 1
    promote(lane, best)
    call('ZADD', WAITING, 0, lane .. '\0' .. beaten)
  end
end

-- A job becomes pending. Answers its lane if that has to be admitted afterwards.
local function make_pending(job, id)
  job.state = PENDING
  if job.lane == '' or has(job, PINNED) then
    add_ready(job.queue, job.order .. id)
  else
    call('ZADD', WAITING, 0, lane_of(job) .. '\0' .. job.order .. id)
    return lane_of(job)
  end
end
