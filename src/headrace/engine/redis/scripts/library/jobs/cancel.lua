-- cancel: end jobs that do not run.
-- KEYS jobs due finished ended errors
-- Needs clock layout job lanes children waits expiry.

-- What is written together for all of them, and lanes in which a place was left; nothing at first.
local cancelled

-- A job is scheduled, waits or is ready; one that is ready may have left its line already.
-- `write_cancelled` writes the rest, and gives its place to the next.
local function cancel_job(job, id, reason)
  cancelled = cancelled or { errors = {}, finished = {}, ended = {}, lanes = {} }
  local waited = false
  if job.lane ~= '' then
    local lane = open_lane(job.queue .. '\0' .. job.lane, job.queue, job.width)
    local member = lane.name .. '\0' .. job.order .. id
    waited = call('ZREM', WAITING, member) == 1
    if not waited and call('ZREM', PLACES, member) == 1 then
      lane.used = lane.used - 1
      if job.state == PENDING and not has(job, PINNED) then lane.heads = lane.heads - 1 end
      cancelled.lanes[lane.name] = lane
    end
  end
  if job.state == SCHEDULED then
    call('ZREM', DUE, id)
    count(scheduled, job.queue, -1)
    stop_waiting(job, id)
  elseif not waited then
    leave_ready(job.queue, job.order .. id)
  end
  leave_expiry(job, id)
  if leave_rates and job.flags >= RATED then leave_rates(job, id) end
  if has(job, CHILD) then end_child(id, job.tail) end
  job.state, job.completed = CANCELLED, now
  call('HSET', JOBS, id, encode(job))
  local n = #cancelled.errors
  cancelled.errors[n + 1], cancelled.errors[n + 2] = id, '\0' .. reason
  cancelled.finished[#cancelled.finished + 1] = struct.pack('<d', now) .. id
  put(cancelled.ended, CANCELLED .. id)
end

local function write_cancelled()
  write_children()
  if not cancelled then return end
  write('HSET', ERRORS, cancelled.errors)
  write('RPUSH', FINISHED, cancelled.finished)
  write('ZADD', ENDED, cancelled.ended)
  for _, lane in pairs(cancelled.lanes) do fill(lane) end
  cancelled = nil
  write_lines()
  if move_up then move_up() end
end
