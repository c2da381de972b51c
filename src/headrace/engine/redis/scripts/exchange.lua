#!lua flags=allow-oom
-- exchange: record outcomes, then lease ready jobs to one worker.
-- KEYS jobs bodies due finished ended results errors logs cancels queues workers signals
-- USES clock job lanes workers
-- ARGV 1 offset  2 worker id ('' none)  3 limit  4 number of queues (-1: all)  then the queues,
--   then six for each outcome: id  token  outcome  delay  data  log entry ('' none)
--   outcome: a final state as a number, or "retry", "snoozed", "released"
--   data: the result, or error type, zero byte, message
-- Answers the refused ids, then id, record and body of each leased job in turn.
-- An outcome counts only while its job runs under its token. A script runs alone, so nothing
-- comes between that check and the write, nor between a freed place and the next one's promotion.
-- Works when memory is full: finished jobs are what can be pruned.

local LOG_LIMIT = 262144

local jobs, held, finished, ended, results = {}, {}, {}, {}, {}
local free, line, refused = {}, {}, {}

local function append_log(id, entry)
  local log = (call('HGET', LOGS, id) or '') .. entry .. '\n'
  if #log > LOG_LIMIT then log = sub(log, -LOG_LIMIT) end
  call('HSET', LOGS, id, log)
end

local function finish(job, id, state, data)
  job.state, job.completed = state, now
  finished[#finished + 1] = now
  finished[#finished + 1] = id
  if state == COMPLETED then
    if data ~= 'null' then
      results[#results + 1] = id
      results[#results + 1] = data
    end
    if job.token > 1 then call('HDEL', ERRORS, id) end
  else
    ended[#ended + 1] = 0
    ended[#ended + 1] = state .. id
    call('HSET', ERRORS, id, data)
  end
  if job.lane ~= '' then
    call('ZREM', PLACES, place(job, id, 'p'))
    free[lane_of(job)] = job.width
  end
end

-- Retry or snooze: wait for a time, or be pending at once. `hold` keeps the lane place meanwhile.
local function try_again(job, id, delay)
  job.worker = ''
  if job.lane ~= '' then
    mark(job, PINNED, has(job, HOLD))
    if not has(job, HOLD) then
      call('ZREM', PLACES, place(job, id, 'p'))
      free[lane_of(job)] = job.width
    end
  end
  job.run_at = now + delay
  if delay > 0 then
    job.state = SCHEDULED
    call('ZADD', DUE, job.run_at, id)
    count(SCHEDULED, job.queue, 1)
  else
    local lane = make_pending(job, id)
    if lane then line[lane] = job.width end
  end
end

-- Given back unstarted: ready in its old place, which a better one may take.
local function release(job, id)
  job.worker, job.state, job.started = '', PENDING, 0
  add_ready(job.queue, job.order .. id)
  if job.lane ~= '' and not has(job, PINNED) then
    call('ZREM', PLACES, place(job, id, 'p'))
    call('ZADD', PLACES, 0, place(job, id, 'r'))
    line[lane_of(job)] = job.width
  end
end

local function settle(job, id, outcome, delay, data)
  held[#held + 1] = job.worker .. '\0' .. id
  count(RUNNING, job.queue, -1)
  local state = tonumber(outcome)
  if has(job, ASKED) then
    local cancel = call('HGET', CANCELS, id)
    call('HDEL', CANCELS, id)
    if not state then
      -- Asked to stop: it is never tried again, or the request would be forgotten.
      state, data = CANCELLED, sub(cancel, string.find(cancel, '\0', 1, true), -1)
    end
  end
  if state then
    finish(job, id, state, data)
  elseif outcome == 'released' then
    job.attempt = job.attempt - 1
    release(job, id)
  else
    if outcome == 'retry' then call('HSET', ERRORS, id, data) else job.attempt = job.attempt - 1 end
    try_again(job, id, delay)
  end
end

local queue_count = tonumber(ARGV[4])
local first = 5 + math.max(queue_count, 0)

local ids = {}
for i = first, #ARGV, 6 do ids[#ids + 1] = ARGV[i] end
local records = read(JOBS, ids)
local seen = {}
for n, id in ipairs(ids) do
  local i = first + (n - 1) * 6
  local job = records[n] and not seen[id] and decode(records[n])
  if job and job.state == RUNNING and job.token == tonumber(ARGV[i + 1]) then
    seen[id] = true
    settle(job, id, ARGV[i + 2], tonumber(ARGV[i + 3]), ARGV[i + 4])
    if ARGV[i + 5] ~= '' then append_log(id, ARGV[i + 5]) end
    jobs[#jobs + 1] = id
    jobs[#jobs + 1] = encode(job)
  else
    refused[#refused + 1] = id
  end
end
write('HSET', JOBS, jobs)
write('ZREM', HELD, held)
write('ZADD', FINISHED, finished)
write('ZADD', ENDED, ended)
write('HSET', RESULTS, results)
for lane, width in pairs(free) do fill(lane, width) end
for lane, width in pairs(line) do admit(lane, width) end

-- The ready lines of several queues are merged by order; each is read in small pieces.
local function open_line(queue, piece)
  return { queue = queue, skip = #queue + 2, piece = piece, from = '[' .. queue .. '\0', at = 0,
    members = {}, taken = nil }
end

local function advance(line_of_queue)
  local self = line_of_queue
  self.at = self.at + 1
  if self.at > #self.members then
    self.members = call('ZRANGE', READY, self.from, '(' .. self.queue .. '\1', 'BYLEX', 'LIMIT', 0,
      self.piece)
    self.at = 1
    if #self.members > 0 then self.from = '(' .. self.members[#self.members] end
  end
  local member = self.members[self.at]
  self.order = member and sub(member, self.skip, self.skip + 16)
  return member ~= nil
end

-- Queues that have ready jobs now: each is found by one step over the one before.
local function queues_with_ready_jobs()
  local queues, from = {}, '-'
  while true do
    local member = call('ZRANGE', READY, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return queues end
    local queue = string.match(member, '^[^%z]+')
    queues[#queues + 1] = queue
    from = '[' .. queue .. '\1'
  end
end

local function queues_to_serve()
  local named = {}
  if queue_count < 0 then named = queues_with_ready_jobs()
  else for i = 1, queue_count do named[i] = ARGV[4 + i] end end
  local queues, known = {}, {}
  for _, queue in ipairs(named) do
    if not known[queue] and call('HGET', QUEUES, queue) ~= '1' then queues[#queues + 1] = queue end
    known[queue] = true
  end
  return queues
end

local function take(limit)
  local queues = queues_to_serve()
  local piece = #queues == 1 and limit or math.max(10, math.ceil(2 * limit / #queues))
  local lines, opened = {}, {}
  for _, queue in ipairs(queues) do
    local each = open_line(queue, piece)
    if advance(each) then
      lines[#lines + 1] = each
      opened[#opened + 1] = each
    end
  end
  local taken = {}
  while #taken < limit and #lines > 0 do
    local best = 1
    for i = 2, #lines do
      if lines[i].order < lines[best].order then best = i end
    end
    local each = lines[best]
    each.taken = each.members[each.at]
    taken[#taken + 1] = sub(each.taken, each.skip + 17)
    if not advance(each) then table.remove(lines, best) end
  end
  for _, each in ipairs(opened) do
    if each.taken then
      call('ZREMRANGEBYLEX', READY, '[' .. each.queue .. '\0', '[' .. each.taken)
    end
  end
  return taken
end

local answer = { refused }
local limit = tonumber(ARGV[3])
if limit > 0 and alive(ARGV[2]) then
  local worker = ARGV[2] .. '\1' .. string.match(call('HGET', WORKERS, ARGV[2]), '^[^%z]+')
  local taken = take(limit)
  local old, body = read(JOBS, taken), read(BODIES, taken)
  local changed, holding, left, entered = {}, {}, {}, {}
  for n, id in ipairs(taken) do
    local job = decode(old[n])
    job.state, job.worker, job.started = RUNNING, worker, now
    job.token, job.attempt = job.token + 1, job.attempt + 1
    count(RUNNING, job.queue, 1)
    if job.lane ~= '' and not has(job, PINNED) then
      left[#left + 1] = place(job, id, 'r')
      entered[#entered + 1] = 0
      entered[#entered + 1] = place(job, id, 'p')
    end
    local record = encode(job)
    changed[2 * n - 1], changed[2 * n] = id, record
    holding[2 * n - 1], holding[2 * n] = 0, worker .. '\0' .. id
    answer[3 * n - 1], answer[3 * n], answer[3 * n + 1] = id, record, body[n]
  end
  write('HSET', JOBS, changed)
  write('ZADD', HELD, holding)
  write('ZREM', PLACES, left)
  write('ZADD', PLACES, entered)
  made_ready = made_ready - #taken
end
write_counts()
-- What this call made ready and did not take itself is for others.
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
