-- waits: what suspended jobs await.
-- KEYS suspended awaits
-- `suspended` has their ids, in the order of ids; `awaits` what each waits for, as JSON. A job is in
-- them while it is scheduled and has the flag, so others cost nothing.

local function suspend(job, id, awaited)
  mark(job, AWAITING, true)
  call('ZADD', SUSPENDED, 0, id)
  call('HSET', AWAITS, id, awaited)
end

-- Whichever way a job leaves that state, what it awaited is forgotten.
local function stop_waiting(job, id)
  if not has(job, AWAITING) then return end
  mark(job, AWAITING, false)
  call('ZREM', SUSPENDED, id)
  call('HDEL', AWAITS, id)
end
