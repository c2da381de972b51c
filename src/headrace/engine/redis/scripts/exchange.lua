#!lua flags=allow-oom
-- exchange: record outcomes, then lease ready jobs to one worker.
-- KEYS jobs bodies due finished ended results errors logs cancels signals
-- USES clock job lanes workers claim
-- ARGV 1 offset  2 worker id ('' none)  3 limit  4 number of queues (-1: all)  then the queues,
--   then six for each outcome: id  token  outcome  delay  data  log entry ('' none)
--   outcome: a final state as a number, or "retry", "snoozed", "released"
--   data: the result, or error type, zero byte, message
-- Answers the refused ids, then id, record and body of each leased job in turn.
-- An outcome counts only while its job runs under its token. A script runs alone, so nothing
-- comes between that check and the write, nor between a freed place and the next one's promotion.
-- Works when memory is full: finished jobs are what can be pruned.

local LOG_LIMIT = 262144
local NOBODY = pack_record(NUMBERS, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0)
local stamp = string.format('%.17g', now)

local jobs, held, finished, ended, results = {}, {}, {}, {}, {}
local queues, widths, freed, arrived, refused = {}, {}, {}, {}, {}

local function append_log(id, entry)
  local log = (call('HGET', LOGS, id) or '') .. entry .. '\n'
  if #log > LOG_LIMIT then log = sub(log, -LOG_LIMIT) end
  call('HSET', LOGS, id, log)
end

local function free_place(id, order, queue, lane, width)
  local name = queue .. '\0' .. lane
  places_gone[#places_gone + 1] = name .. '\0' .. order .. id
  queues[name], widths[name] = queue, width
  freed[name] = (freed[name] or 0) + 1
end

local function end_job(id, state)
  local n = #finished
  finished[n + 1], finished[n + 2] = stamp, id
  if state ~= COMPLETED then put(ended, state .. id) end
end

local function keep_result(id, token, result)
  if result ~= 'null' then
    local n = #results
    results[n + 1], results[n + 2] = id, result
  end
  -- Only an earlier attempt can have left an error.
  if token > 1 then call('HDEL', ERRORS, id) end
end

local function finish(job, id, state, data)
  job.state, job.completed = state, now
  end_job(id, state)
  if state == COMPLETED then keep_result(id, job.token, data) else call('HSET', ERRORS, id, data) end
  if job.lane ~= '' then free_place(id, job.order, job.queue, job.lane, job.width) end
end

-- Retry or snooze: wait for a time, or be pending at once. `hold` keeps the lane place meanwhile.
local function try_again(job, id, delay)
  job.worker = ''
  if job.lane ~= '' then
    mark(job, PINNED, has(job, HOLD))
    if not has(job, HOLD) then free_place(id, job.order, job.queue, job.lane, job.width) end
  end
  job.run_at = now + delay
  if delay > 0 then
    job.state = SCHEDULED
    call('ZADD', DUE, job.run_at, id)
    count(scheduled, job.queue, 1)
  else
    local lane = make_pending(job, id)
    if lane then arrived[lane.name] = lane end
  end
end

-- Given back unstarted: ready in its old place, which a better one may take.
local function release(job, id)
  job.worker, job.state, job.started = '', PENDING, 0
  add_ready(job.queue, job.order .. id)
  if job.lane ~= '' and not has(job, PINNED) then
    local lane = open_lane(job.queue .. '\0' .. job.lane, job.queue, job.width)
    lane.heads = lane.heads + 1
    arrived[lane.name] = lane
  end
end

local function settle(job, id, outcome, delay, data)
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
  local n = #jobs
  jobs[n + 1], jobs[n + 2] = id, encode(job)
end

local queue_count = tonumber(ARGV[4])
local first = 5 + math.max(queue_count, 0)

local ids = {}
for i = first, #ARGV, 6 do ids[#ids + 1] = ARGV[i] end
local records = read(JOBS, ids)
local seen = {}
for n, id in ipairs(ids) do
  local i = first + (n - 1) * 6
  local record = not seen[id] and records[n] or NOBODY
  local state, flags, width, token, attempt, run_at, created, started, _, size =
    unpack_record(NUMBERS, record)
  if state ~= RUNNING or token ~= tonumber(ARGV[i + 1]) then
    refused[#refused + 1] = id
  else
    seen[id] = true
    local queue, lane = unpack_record('ss', record, QUEUE)
    held[#held + 1] = sub(record, -size) .. '\0' .. id
    count(running, queue, -1)
    if ARGV[i + 2] == '4' and flags < ASKED then
      -- The way that nearly every job goes, without a table for each.
      local last = #jobs
      jobs[last + 1] = id
      jobs[last + 2] = pack_record(NUMBERS .. 'c0', COMPLETED, flags, width, token, attempt, run_at,
        created, started, now, size, sub(record, TEXTS))
      end_job(id, COMPLETED)
      keep_result(id, token, ARGV[i + 4])
      if lane ~= '' then free_place(id, sub(record, TEXTS, QUEUE - 2), queue, lane, width) end
    else
      settle(decode(record), id, ARGV[i + 2], tonumber(ARGV[i + 3]), ARGV[i + 4])
    end
    if ARGV[i + 5] ~= '' then append_log(id, ARGV[i + 5]) end
  end
end
write('HSET', JOBS, jobs)
write('ZREM', HELD, held)
write('ZADD', FINISHED, finished)
write('ZADD', ENDED, ended)
write('HSET', RESULTS, results)
open_lanes(queues, widths)
for name, places in pairs(freed) do opened[name].used = opened[name].used - places end
for name, _ in pairs(freed) do fill(opened[name]) end
for _, lane in pairs(arrived) do admit(lane) end
write_lines()

local answer = { refused }
local limit = tonumber(ARGV[3])
if limit > 0 and alive(ARGV[2]) then
  local worker = ARGV[2] .. '\1' .. string.match(call('HGET', WORKERS, ARGV[2]), '^[^%z]+')
  local named = {}
  if queue_count < 0 then named = queues_with_ready_jobs()
  else for i = 1, queue_count do named[i] = ARGV[4 + i] end end
  local taken = take(named, limit)
  local old, body = read(JOBS, taken), read(BODIES, taken)
  local changed, holding, left = {}, {}, {}
  for n, id in ipairs(taken) do
    local _, flags, width, token, attempt, run_at, created = unpack_record(NUMBERS, old[n])
    local record = pack_record(NUMBERS .. 'c0c0', RUNNING, flags, width, token + 1, attempt + 1,
      run_at, created, now, 0, #worker, sub(old[n], TEXTS), worker)
    local queue, lane = unpack_record('ss', record, QUEUE)
    if lane ~= '' and bit.band(flags, PINNED) == 0 then
      local name = queue .. '\0' .. lane
      queues[name], widths[name] = queue, width
      left[#left + 1] = name
    end
    changed[2 * n - 1], changed[2 * n] = id, record
    holding[2 * n - 1], holding[2 * n] = 0, worker .. '\0' .. id
    answer[3 * n - 1], answer[3 * n], answer[3 * n + 1] = id, record, body[n]
  end
  write('HSET', JOBS, changed)
  write('ZADD', HELD, holding)
  open_lanes(queues, widths)
  for _, name in ipairs(left) do opened[name].heads = opened[name].heads - 1 end
  made_ready = made_ready - #taken
end
write_lanes()
write_counts()
-- What this call made ready and did not take itself is for others.
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
