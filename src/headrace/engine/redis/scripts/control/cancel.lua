#!lua flags=allow-oom
-- cancel: end jobs that do not run; ask those that run to stop.
-- KEYS jobs due finished ended errors cancels signals
-- USES clock layout job lanes children waits
-- ARGV 1 offset  2 reason  then ids
-- Answers each id with "1" (cancelled) or "0" (asked to stop) in front; others are left out.
-- A claim cannot come in between: a job is either taken before, and asked, or never handed out.

local answer, free = {}, {}

local function leave_lane(job, id, lane)
  local waited = call('ZREM', WAITING, lane.name .. '\0' .. job.order .. id) == 1
  if not waited and call('ZREM', PLACES, lane.name .. '\0' .. job.order .. id) == 1 then
    lane.used = lane.used - 1
    if job.state == PENDING and not has(job, PINNED) then lane.heads = lane.heads - 1 end
    free[lane.name] = lane
  end
  return waited
end

local function leave_line(job, id)
  local waited = job.lane ~= ''
    and leave_lane(job, id, open_lane(job.queue .. '\0' .. job.lane, job.queue, job.width))
  if job.state == SCHEDULED then
    call('ZREM', DUE, id)
    count(scheduled, job.queue, -1)
    stop_waiting(job, id)
  elseif not waited then
    leave_ready(job.queue, job.order .. id)
  end
end

for i = 3, #ARGV do
  local id = ARGV[i]
  local record = call('HGET', JOBS, id)
  local job = record and decode(record)
  if job and job.state == RUNNING then
    if not has(job, ASKED) then
      mark(job, ASKED, true)
      call('HSET', JOBS, id, encode(job))
      call('HSET', CANCELS, id, job.worker .. '\0' .. ARGV[2])
    end
    call('PUBLISH', SIGNALS, 'cancel:' .. id)
    answer[#answer + 1] = '0' .. id
  elseif job and job.state < RUNNING then
    leave_line(job, id)
    job.state, job.completed = CANCELLED, now
    call('HSET', JOBS, id, encode(job))
    call('HSET', ERRORS, id, '\0' .. ARGV[2])
    call('RPUSH', FINISHED, struct.pack('<d', now) .. id)
    call('ZADD', ENDED, 0, CANCELLED .. id)
    if has(job, CHILD) then end_child(id, job.tail) end
    answer[#answer + 1] = '1' .. id
  end
end
write_children()
for _, lane in pairs(free) do fill(lane) end
write_lines()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
