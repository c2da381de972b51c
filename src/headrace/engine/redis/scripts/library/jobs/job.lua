-- job: the small record that changes as a job moves. What rarely does is in `bodies`.
-- KEYS counts
-- library/store/layout.lua tells where things are in it.

local unpack_record, pack_record = struct.unpack, struct.pack

-- A table per job is convenient and slow: where every job passes, scripts use numbers and texts.
local function decode(record)
  local state, flags, width, token, attempt, run_at, created, started, completed, size =
    unpack_record(NUMBERS, record)
  local queue, lane, tail = unpack_record('ss', record, QUEUE)
  return {
    state = state, flags = flags, width = width, token = token, attempt = attempt,
    run_at = run_at, created = created, started = started, completed = completed,
    order = sub(record, TEXTS, ORDER_END), queue = queue, lane = lane,
    tail = sub(record, tail, -1 - size), worker = sub(record, #record + 1 - size),
  }
end

local function encode(job)
  return pack_record(NUMBERS .. 'sssc0c0', job.state, job.flags, job.width, job.token, job.attempt,
    job.run_at, job.created, job.started, job.completed, #job.worker,
    job.order, job.queue, job.lane, job.tail, job.worker)
end

local function has(job, flag)
  return bit.band(job.flags, flag) ~= 0
end

local function mark(job, flag, on)
  if on then job.flags = bit.bor(job.flags, flag)
  else job.flags = bit.band(job.flags, bit.bnot(flag)) end
end

-- The parent and the group of a child, from the end of its texts: those that follow the lane.
local function family_of(tail)
  return string.match(tail, '^[^%z]*%z[^%z]*%z[^%z]*%z([^%z]*)%z([^%z]*)$')
end

-- Higher priority first, then the order of arrival: 17 digits, so that text order is right.
local function order_of(priority, number)
  return string.format('%04d%013.0f', 1000 - priority, number)
end

local function priority_of(order)
  return 1000 - tonumber(sub(order, 1, 4))
end

-- How many jobs each queue has in the two states that no index counts.
local scheduled, running = {}, {}

local function count(counts, queue, change)
  counts[queue] = (counts[queue] or 0) + change
end

local function write_counts()
  for state, counts in pairs({ [SCHEDULED] = scheduled, [RUNNING] = running }) do
    for queue, change in pairs(counts) do
      local field = state .. queue
      if change ~= 0 and call('HINCRBY', COUNTS, field, change) == 0 then
        call('HDEL', COUNTS, field)
      end
      counts[queue] = nil
    end
  end
end
