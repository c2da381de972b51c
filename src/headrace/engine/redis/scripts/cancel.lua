#!lua flags=allow-oom
-- cancel: end jobs that do not run; ask those that run to stop.
-- KEYS jobs due finished ended errors cancels signals
-- USES clock job lanes
-- ARGV 1 offset  2 reason  then ids
-- Answers each id with "1" (cancelled) or "0" (asked to stop) in front; others are left out.
-- A claim cannot come in between: a job is either taken before, and asked, or never handed out.

local answer, free = {}, {}

local function leave_line(job, id)
  if job.state == SCHEDULED then
    call('ZREM', DUE, id)
    count(SCHEDULED, job.queue, -1)
  elseif job.lane == '' or call('ZREM', WAITING, lane_of(job) .. '\0' .. job.order .. id) == 0 then
    call('ZREM', READY, job.queue .. '\0' .. job.order .. id)
  end
  if job.lane ~= '' then
    local kind = has(job, PINNED) and 'p' or 'r'
    if call('ZREM', PLACES, place(job, id, kind)) == 1 then free[lane_of(job)] = job.width end
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
    call('ZADD', FINISHED, now, id)
    call('ZADD', ENDED, 0, CANCELLED .. id)
    answer[#answer + 1] = '1' .. id
  end
end
for lane, width in pairs(free) do fill(lane, width) end
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
