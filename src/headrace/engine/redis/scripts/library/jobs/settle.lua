-- settle: record how attempts ended.
-- KEYS jobs ready reserved claimants due held finished ended results errors logs cancels
-- An outcome counts only while its job runs under its token. Lists are written at the end, so one
-- call of the server serves all jobs; records come first, because lanes look at them.

local LOG_LIMIT = 262144
-- How many of those that come next in line are looked at when one is reserved.
local NEXT = 500
-- How many jobs were left for workers that know their task.
local left_for_others = 0

-- Reserve jobs of these tasks among those that are next in line of a queue.
local function reserve_next(queue, tasks)
  local members = call('ZRANGE', READY, '[' .. queue .. '\0', '(' .. queue .. '\1', 'BYLEX', 'LIMIT', 0,
    NEXT)
  local ids, gone, reserved = {}, {}, {}
  for n = 1, #members do ids[n] = sub(members[n], #queue + 19) end
  for n, record in ipairs(read(JOBS, ids)) do
    local _, _, task = unpack_record('sss', record, QUEUE)
    if tasks[task] then
      gone[#gone + 1] = members[n]
      put(reserved, queue .. '\0' .. task .. sub(members[n], #queue + 1))
    end
  end
  write('ZREM', READY, gone)
  write('ZADD', RESERVED, reserved)
end

-- `first` is where the outcomes begin in ARGV and `last` where they end, six for each. Returns the
-- refused ids.
local function settle_all(first, last)
  local stamp = struct.pack('<d', now)
  local jobs, held, finished, ended, results = {}, {}, {}, {}, {}
  local freed, arrived, refused, reserved = {}, {}, {}, {}

  local function append_log(id, entry)
    local log = (call('HGET', LOGS, id) or '') .. entry .. '\n'
    if #log > LOG_LIMIT then log = sub(log, -LOG_LIMIT) end
    call('HSET', LOGS, id, log)
  end

  local function free_place(id, order, queue, lane, width)
    local name = queue .. '\0' .. lane
    lines.left[#lines.left + 1] = name .. '\0' .. order .. id
    local left = name_lane(name, queue, width)
    if left.change == 0 then freed[#freed + 1] = left end
    left.change = left.change + 1
  end

  local function end_job(id, state)
    finished[#finished + 1] = stamp .. id
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
    if state == COMPLETED then
      keep_result(id, job.token, data)
    else
      call('HSET', ERRORS, id, data)
    end
    if job.lane ~= '' then free_place(id, job.order, job.queue, job.lane, job.width) end
    if has(job, CHILD) then end_child(id, job.tail) end
    leave_expiry(job, id)
    if leave_rates and job.flags >= RATED then leave_rates(job, id) end
  end

  -- Retry or snooze: wait for a time, or be pending at once. `hold` keeps the lane place meanwhile.
  -- Who waits for a time may be woken before it by what it awaits ('' nothing).
  local function try_again(job, id, delay, awaited, unstarted)
    job.worker, job.started = '', 0
    leave_expiry(job, id, unstarted)
    if job.lane ~= '' then
      mark(job, PINNED, has(job, HOLD))
      if not has(job, HOLD) then free_place(id, job.order, job.queue, job.lane, job.width) end
    end
    job.run_at = now + delay
    if delay > 0 then
      job.state = SCHEDULED
      call('ZADD', DUE, job.run_at, id)
      count(scheduled, job.queue, 1)
      if awaited ~= '' then suspend(job, id, awaited) end
    else
      local lane = make_pending(job, id)
      if lane then arrived[lane.name] = lane end
    end
  end

  -- Who may claim from a line that begins has to find out, so all claimants look again.
  local function begin_reserved(queue, task, alone)
    if not alone then
      reserved[queue] = reserved[queue] or {}
      if reserved[queue][task] then return end
      reserved[queue][task] = true
    end
    local line = queue .. '\0' .. task
    local there = call('ZRANGE', RESERVED, '[' .. line .. '\0', '(' .. line .. '\1', 'BYLEX', 'LIMIT',
      0, 1)
    if #there == 0 then call('DEL', CLAIMANTS) end
  end

  -- Given back unstarted: ready in its old place, which a better one may take.
  local function release(job, id, reserve, alone)
    job.worker, job.state, job.started = '', PENDING, 0
    leave_expiry(job, id, true)
    if reserve then
      put(lines.reserved, reserved_member(job, id))
      left_for_others = left_for_others + 1
      begin_reserved(job.queue, string.match(job.tail, '^[^%z]*'), alone)
    else
      add_ready(job.queue, job.order .. id)
    end
    if job.lane ~= '' and not has(job, PINNED) then
      local lane = open_lane(job.queue .. '\0' .. job.lane, job.queue, job.width)
      lane.heads = lane.heads + 1
      arrived[lane.name] = lane
    end
  end

  local function settle(job, id, outcome, delay, data)
    local state = tonumber(outcome)
    if job.flags >= PARKED then
      -- A program from before layout 6 has claimed it. While it was parked it was pinned. One that was
      -- not claimed before was not, before that.
      mark(job, PARKED, false)
      mark(job, PINNED, has(job, HOLD) and job.token > 1)
    end
    if has(job, ASKED) then
      local cancel = call('HGET', CANCELS, id)
      call('HDEL', CANCELS, id)
      if not state or state == CANCELLED then
        -- Asked to stop: it is never tried again, or the request would be forgotten. Who asked
        -- knows the reason better than the attempt that obeyed.
        state, data = CANCELLED, sub(cancel, string.find(cancel, '\0', 1, true), -1)
      end
    end
    if state then
      finish(job, id, state, data)
    elseif outcome == 'released' or outcome == 'reserved' or outcome == 'reserved_alone' then
      job.attempt = job.attempt - 1
      release(job, id, outcome ~= 'released', outcome == 'reserved_alone')
    else
      if outcome == 'retry' then
        call('HSET', ERRORS, id, data)
        data = ''
      else
        job.attempt = job.attempt - 1
      end
      try_again(job, id, delay, data, outcome == 'put_off')
    end
    local n = #jobs
    jobs[n + 1], jobs[n + 2] = id, encode(job)
  end

  local ids = {}
  for i = first, last, 6 do ids[#ids + 1] = ARGV[i] end
  local records = read(JOBS, ids)
  local seen = {}
  for n, id in ipairs(ids) do
    local i = first + (n - 1) * 6
    local record = not seen[id] and records[n]
    local state, flags, width, token, attempt, run_at, created, started, _, size
    if record then
      state, flags, width, token, attempt, run_at, created, started, _, size =
        unpack_record(NUMBERS, record)
    end
    if state ~= RUNNING or token ~= tonumber(ARGV[i + 1]) then
      refused[#refused + 1] = id
    else
      seen[id] = true
      local queue, lane, tail = unpack_record('ss', record, QUEUE)
      held[#held + 1] = sub(record, -size) .. '\0' .. id
      count(running, queue, -1)
      local child = flags >= CHILD
      if ARGV[i + 2] == '4' and flags < (child and CHILD + ASKED or ASKED) then
        -- The way that nearly every job goes, without a table for each. No higher flag is set either.
        local last = #jobs
        jobs[last + 1] = id
        jobs[last + 2] = pack_record(NUMBERS .. 'c0', COMPLETED, flags, width, token, attempt,
          run_at, created, started, now, size, sub(record, TEXTS))
        end_job(id, COMPLETED)
        keep_result(id, token, ARGV[i + 4])
        if lane ~= '' then free_place(id, sub(record, TEXTS, ORDER_END), queue, lane, width) end
        if child then end_child(id, sub(record, tail, -1 - size)) end
      else
        local delay, seconds = tonumber(ARGV[i + 3]), nil
        if not delay then delay, seconds = string.match(ARGV[i + 3], '^(%S+) (%S+)$') end
        settle(decode(record), id, ARGV[i + 2], tonumber(delay), ARGV[i + 4])
        if seconds and lane ~= '' then hold_key(queue, lane, tonumber(seconds)) end
      end
      if ARGV[i + 5] ~= '' then append_log(id, ARGV[i + 5]) end
    end
  end
  write('HSET', JOBS, jobs)
  write('ZREM', HELD, held)
  write('RPUSH', FINISHED, finished)
  write('ZADD', ENDED, ended)
  write('HSET', RESULTS, results)
  write_children()
  open_lanes(freed)
  for _, lane in ipairs(freed) do lane.used, lane.change = lane.used - lane.change, 0 end
  for _, lane in ipairs(freed) do fill(lane) end
  for _, lane in pairs(arrived) do admit(lane) end
  write_lines()
  for queue, tasks in pairs(reserved) do reserve_next(queue, tasks) end
  return refused
end
