#!lua
-- insert_by_policy: store a job in one step with what that does to others that have its key or its lane.
-- KEYS jobs bodies task_keys due waiting places expiry signals
-- USES clock layout job lanes children waits expiry rates cancel stop body queues insert related rated
-- ARGV 1 offset  2 if its key exists: return, replace, debounce  3 window in seconds ('' none)
--   4 the longest wait in seconds ('' none)  5 if its lane is full: wait, refuse, replace, cancel_running
--   6 the reason of those in whose place it comes, then the job as library/claim/rated.lua reads it
-- Answers its id, with "=" in front of that of a job that was there, '' if it is refused; then each of
-- those in whose place it comes, with "1" (cancelled) or "0" (asked to stop) in front.
-- Of very many that wait only the last are cancelled by one call, and "+" is the answer: nothing is
-- stored yet, and the caller has to come again. So a call is a bounded step, nobody who would be next
-- starts meanwhile in spite of it, and what is stored comes in one step with the end of all others. Jobs
-- that have a place are at most as many as the lane is wide.

local AT_ONCE = 2000
local FIRST = 7
local on_duplicate, when_full, reason = ARGV[2], ARGV[5], ARGV[6]
local id, head, field, body = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local width, flags, _, run_at, delay, queue, lane = struct.unpack(HEAD, head)
if run_at == 0 then run_at = now + delay end
local answer = { '' }

local function give_way(job, other)
  cancel_job(job, other, reason)
  answer[#answer + 1] = '1' .. other
end

local function finish(word)
  write_cancelled()
  write_lanes()
  write_counts()
  if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
  answer[1] = word
  return answer
end

-- The new expiry of a job that has not started, or none; and arguments and meta of the new body.
local function renew_body(job, other)
  if bit.band(flags, EXPIRES) ~= 0 then
    local at = struct.unpack('<d', body)
    mark(job, EXPIRES, true)
    call('ZADD', EXPIRY, at > 0 and at or now - at, other)
    body = sub(body, 9)
  else
    leave_expiry(job, other)
  end
  local old = call('HGET', BODIES, other)
  local first, last = middle_of(body)
  call('HSET', BODIES, other, sub(body, 1, first - 1) .. sub(old, middle_of(old)) .. sub(body, last + 1))
end

-- One that is due already, or parked, is not put off. One that is due from now on does not wait to be
-- found.
local function put_off(job, other)
  if job.state ~= SCHEDULED or job.run_at <= now or has(job, PARKED) then return end
  job.run_at = run_at
  if ARGV[4] ~= '' then job.run_at = math.min(run_at, job.created + tonumber(ARGV[4])) end
  if job.run_at > now then
    call('ZADD', DUE, job.run_at, other)
    return
  end
  call('ZREM', DUE, other)
  count(scheduled, job.queue, -1)
  stop_waiting(job, other)
  return make_pending(job, other, job.token == 0)
end

local function debounce(job, other)
  local said = bit.band(flags, RATED) ~= 0 and take_rate(ARGV, FIRST)
  body = ARGV[10]
  renew_body(job, other)
  local entered = put_off(job, other)
  if said then mark(job, RATED, true) end
  call('HSET', JOBS, other, encode(job))
  if said then keep_rates({ { id = other, queue = queue, lane = lane, rate = said } }) end
  if entered then admit(entered) end
  write_lines()
  return finish('=' .. other)
end

-- `members` of a lane, as `waiting` and `places` have them.
local function make_room(members, skip)
  local others = {}
  for n, member in ipairs(members) do others[n] = sub(member, skip) end
  for n, record in ipairs(read(JOBS, others)) do
    local job = decode(record)
    if job.state == RUNNING then
      ask_to_stop(job, others[n], reason)
      answer[#answer + 1] = '0' .. others[n]
    else
      give_way(job, others[n])
    end
  end
end

-- Its lane has no place for it. Answers whether there is more to do before it is stored.
local function clear(open, waiting)
  local low, high, skip = '[' .. open.name .. '\0', '(' .. open.name .. '\1', #open.name + 19
  if waiting > AT_ONCE then
    make_room(call('ZRANGE', WAITING, high, low, 'BYLEX', 'REV', 'LIMIT', 0, AT_ONCE), skip)
    return true
  end
  make_room(call('ZRANGE', WAITING, low, high, 'BYLEX'), skip)
  if when_full == 'cancel_running' then
    make_room(call('ZRANGE', PLACES, low, high, 'BYLEX'), skip)
  end
end

if call('HEXISTS', JOBS, id) == 1 then return { '=' .. id } end
local owner = field ~= '' and call('HGET', TASK_KEYS, field)
local record = owner and call('HGET', JOBS, owner)
if record then
  local job = decode(record)
  if on_duplicate == 'return' then
    if ARGV[3] == '' or now - job.created < tonumber(ARGV[3]) then return { '=' .. owner } end
  elseif job.state < RUNNING and job.token == 0 then
    if on_duplicate == 'debounce' and job.queue == queue and job.lane == lane then
      return debounce(job, owner)
    end
    give_way(job, owner)
  end
end
if when_full ~= 'wait' and lane ~= '' and run_at <= now then
  local open = open_lane(queue .. '\0' .. lane, queue, width)
  local waiting = open.waits > 0
    and call('ZLEXCOUNT', WAITING, '[' .. open.name .. '\0', '(' .. open.name .. '\1') or 0
  -- Those that wait come first, whatever their priority.
  if open.used + waiting >= width then
    if when_full == 'refuse' then return answer end
    if clear(open, waiting) then return finish('+') end
  end
end
-- From now on the key is that of the new one.
if owner then call('HDEL', TASK_KEYS, field) end
write_cancelled()
answer[1] = insert_rated(ARGV, FIRST)[1]
return answer
