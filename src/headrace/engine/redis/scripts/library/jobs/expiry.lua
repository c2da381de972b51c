-- expiry: by when jobs have to start.
-- KEYS expiry
-- A sorted set of ids by that time. A job is in it and has the flag until it has started or ended; others
-- are in none of this. One that runs may yet be given back unstarted, so it stays. If its time comes
-- meanwhile, the script `expire` puts it aside: it adds LATE to the time, so that nobody meets it who
-- looks for what is due.

local LATE = 1000000000000
-- The reason of those that end for it, as model/insert_policy.py has it.
local EXPIRED = 'expired: not started in time'

-- A job has started or ended, or was given back `unstarted`. Its record is for the caller to write.
local function leave_expiry(job, id, unstarted)
  if not has(job, EXPIRES) then return end
  if not unstarted then
    mark(job, EXPIRES, false)
    call('ZREM', EXPIRY, id)
  elseif tonumber(call('ZSCORE', EXPIRY, id) or 0) >= LATE then
    call('ZINCRBY', EXPIRY, -LATE, id)
  end
end
