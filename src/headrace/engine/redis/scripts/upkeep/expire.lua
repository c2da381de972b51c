#!lua flags=allow-oom
-- expire: end jobs that should have started by now and have not, the earliest first.
-- KEYS jobs expiry signals
-- USES clock layout job lanes children waits expiry rates cancel
-- ARGV 1 offset  2 how many entries to look at
-- Answers in how many seconds the next may be ('' none), then the ids of those that ended.
-- Each entry that is due is met once: those of jobs that run are put aside, all others are forgotten.
-- Jobs that have started or ended are among them only if a program from before layout 5 did that.

local ids = call('ZRANGE', EXPIRY, '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[2])
local answer, gone = { '' }, {}
for n, record in ipairs(read(JOBS, ids)) do
  local id, job = ids[n], record and decode(record)
  if job and job.state == RUNNING and job.attempt == 1 then
    call('ZINCRBY', EXPIRY, LATE, id)
  else
    gone[#gone + 1] = id
    if job and job.state < RUNNING and job.attempt == 0 then
      cancel_job(job, id, EXPIRED)
      answer[#answer + 1] = id
    elseif job then
      leave_expiry(job, id)
      call('HSET', JOBS, id, encode(job))
    end
  end
end
write('ZREM', EXPIRY, gone)
write_cancelled()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
local next = call('ZRANGE', EXPIRY, 0, 0, 'WITHSCORES')
local at = tonumber(next[2] or LATE)
if at < LATE then answer[1] = string.format('%.6f', math.max(0, at - now)) end
return answer
