#!lua flags=allow-oom
-- rerun: run finished jobs again, and scheduled ones now.
-- KEYS meta jobs due ended results errors notes signals
-- USES clock layout job lanes queues children waits
-- ARGV 1 offset, then ids
-- Answers the ids that were moved. A finished job gets a new number, so it queues up at the end;
-- its token goes on growing, so an attempt from before can never settle it.

local answer, lanes = {}, {}
for i = 2, #ARGV do
  local id = ARGV[i]
  local record = call('HGET', JOBS, id)
  local job = record and decode(record)
  if job and (job.state == SCHEDULED or job.state > RUNNING) then
    local new = job.state == SCHEDULED and job.token == 0
    if job.state == SCHEDULED then
      call('ZREM', DUE, id)
      count(scheduled, job.queue, -1)
      stop_waiting(job, id)
    else
      -- Its place among the finished ones is left to whoever prunes: it has another time by then.
      call('HINCRBY', META, 'outdated', 1)
      call('ZREM', ENDED, job.state .. id)
      call('HDEL', RESULTS, id)
      call('HDEL', ERRORS, id)
      call('HDEL', NOTES, id)
      mark(job, PINNED, false)
      mark(job, ASKED, false)
      if has(job, CHILD) then begin_child(id, job.tail) end
      use_queue(job.queue)
      job.attempt, job.started, job.completed, job.worker = 0, 0, 0, ''
      job.order = sub(job.order, 1, 4) .. sub(order_of(0, call('HINCRBY', META, 'seq', 1)), 5)
    end
    job.run_at = now
    local lane = make_pending(job, id, new)
    if lane then lanes[lane.name] = lane end
    call('HSET', JOBS, id, encode(job))
    answer[#answer + 1] = id
  end
end
write_children()
for _, lane in pairs(lanes) do admit(lane) end
write_lines()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
