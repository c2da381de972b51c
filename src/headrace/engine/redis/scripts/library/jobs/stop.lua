-- stop: ask jobs that run to stop.
-- KEYS jobs cancels signals
-- Not in library/jobs/cancel.lua: it would cost every claim something.

local function ask_to_stop(job, id, reason)
  if not has(job, ASKED) then
    mark(job, ASKED, true)
    call('HSET', JOBS, id, encode(job))
    call('HSET', CANCELS, id, job.worker .. '\0' .. reason)
  end
  call('PUBLISH', SIGNALS, 'cancel:' .. id)
end
