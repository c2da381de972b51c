-- queues: which queues are known.
-- KEYS queues
-- Of each '1' if it is paused, else when the last job came in, to the hour: no write for each job.

local HOUR = 3600

local function use_queue(queue)
  local used = call('HGET', QUEUES, queue)
  if not used or used ~= '1' and math.abs(now - used) > HOUR then
    call('HSET', QUEUES, queue, string.format('%.0f', now))
  end
end
