-- workers: who is alive. A worker that is not in `leases` is dead and never gets a job again.
-- KEYS leases dead orphans held workers worker_names beats idle claimants
-- `held` has worker, zero byte, job id; a worker is its id, byte one, its name.

-- Alive until declared dead. A lapsed lease alone changes nothing: somebody has to see it lapse.
local function alive(worker)
  return call('ZSCORE', LEASES, worker)
end

local function holds(worker, limit)
  return call('ZRANGE', HELD, '[' .. worker .. '\1', '(' .. worker .. '\2', 'BYLEX', 'LIMIT', 0,
    limit)
end

local function die(worker)
  call('ZREM', LEASES, worker)
  call('HDEL', IDLE, worker)
  call('ZADD', DEAD, 'NX', now, worker)
  if #holds(worker, 1) > 0 then call('ZADD', ORPHANS, now, worker) end
end

local function forget(worker)
  local info = call('HGET', WORKERS, worker)
  local name = info and string.match(info, '^[^%z]+')
  if name and call('HGET', WORKER_NAMES, name) == worker then call('HDEL', WORKER_NAMES, name) end
  call('HDEL', WORKERS, worker)
  call('HDEL', BEATS, worker)
  call('HDEL', IDLE, worker)
  call('HDEL', CLAIMANTS, worker)
  call('ZREM', LEASES, worker)
  call('ZREM', DEAD, worker)
  call('ZREM', ORPHANS, worker)
end
