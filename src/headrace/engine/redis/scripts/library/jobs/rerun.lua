-- rerun: run a finished job again, or a scheduled one now.
-- KEYS meta due ended results errors notes signals
-- Needs clock layout job lanes queues children waits expiry rates. A finished job gets a new number and
-- queues up at the end; its token goes on growing, so an attempt from before can never settle it.

local rerun_lanes = {}

-- Answers whether the job was moved; `write_reruns` writes the rest for all of them.
local function rerun(id)
  local record = call('HGET', JOBS, id)
  local job = record and decode(record)
  if not job or (job.state ~= SCHEDULED and job.state <= RUNNING) then return false end
  local new = job.state == SCHEDULED and job.token == 0
  if job.state == SCHEDULED then
    call('ZREM', DUE, id)
    count(scheduled, job.queue, -1)
    stop_waiting(job, id)
    if has(job, PARKED) then forget_parked(job, id) end
  else
    -- Its place among the finished ones is left to whoever prunes: it has another time by then.
    call('HINCRBY', META, 'outdated', 1)
    call('ZREM', ENDED, job.state .. id)
    call('HDEL', RESULTS, id)
    call('HDEL', ERRORS, id)
    call('HDEL', NOTES, id)
    mark(job, PINNED, false)
    mark(job, PARKED, false)
    mark(job, ASKED, false)
    -- A program from before layout 5 may have ended it.
    leave_expiry(job, id)
    if has(job, CHILD) then begin_child(id, job.tail) end
    if has(job, RATED) then bring_rate_back(job, id) end
    use_queue(job.queue)
    job.attempt, job.started, job.completed, job.worker = 0, 0, 0, ''
    job.order = sub(job.order, 1, 4) .. sub(order_of(0, call('HINCRBY', META, 'seq', 1)), 5)
  end
  job.run_at = now
  local lane = make_pending(job, id, new)
  if lane then rerun_lanes[lane.name] = lane end
  call('HSET', JOBS, id, encode(job))
  return true
end

local function write_reruns()
  write_children()
  for _, lane in pairs(rerun_lanes) do admit(lane) end
  write_lines()
  write_lanes()
  write_counts()
  if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
end
