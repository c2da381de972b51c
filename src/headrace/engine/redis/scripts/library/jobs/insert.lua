-- insert: store jobs in the order of the call; an id or a (task, key) that exists is not stored.
-- KEYS meta jobs bodies ids task_keys due signals
-- Four values for each job: id  head  key field (task, zero, key; '' none)  body
--   head: struct of width, flags, priority, run_at or 0, delay; then with zero bytes between them
--   queue, lane ('' none), task, key, source and, of a child, parent and group ('' none), as the job's
--   record has them
-- A call that is repeated finds its own ids and changes nothing, so a lost answer does no harm. The
-- id is looked at first: whose key it brings does not matter then.

-- `values` are those of the jobs, from `first` on. Returns an id for each, with "=" in front if it
-- existed.
local function insert_jobs(values, first)
  local given = {}
  for i = first, #values, 4 do given[#given + 1] = values[i] end
  local known = read(JOBS, given)
  local number = call('HINCRBY', META, 'seq', #given) - #given

  local jobs, bodies, ids, due = {}, {}, {}, {}
  local answer, lanes, queues = {}, {}, {}
  local seen, entered, narrowed = {}, {}, {}

  -- The last width of a call counts for all of its jobs: let them in once more, by that one.
  local function enter_again(lane)
    write_lines()
    for _, member in ipairs(entered[lane.name]) do
      call('ZREM', PLACES, member)
      call('ZREM', READY, lane.queue .. '\0' .. sub(member, #lane.name + 2))
      lane.used, lane.heads, made_ready = lane.used - 1, lane.heads - 1, made_ready - 1
      wait(lane, member)
    end
    lanes[lane.name] = lane
  end

  for n, id in ipairs(given) do
    local i = first + 4 * (n - 1)
    local head, field = values[i + 1], values[i + 2]
    local existing = seen[id] or known[n] and id or field ~= '' and call('HGET', TASK_KEYS, field)
    seen[id] = existing or id
    if existing then
      answer[n] = '=' .. existing
    else
      answer[n] = id
      local width, flags, priority, run_at, delay, queue, lane = struct.unpack(HEAD, head)
      if run_at == 0 then run_at = now + delay end
      local order = order_of(priority, number + n)
      local state = PENDING
      if run_at > now then
        state = SCHEDULED
        due[#due + 1] = run_at
        due[#due + 1] = id
        count(scheduled, queue, 1)
      elseif lane == '' then
        add_ready(queue, order .. id)
      else
        local name = queue .. '\0' .. lane
        local open = open_lane(name, queue, width)
        if entered[name] and open.width > width then narrowed[name] = open end
        open.width = width
        if open.waits == 0 and open.used < width then
          local member = name .. '\0' .. order .. id
          enter(open, member)
          local members = entered[name] or {}
          members[#members + 1], entered[name] = member, members
        else
          wait(open, name .. '\0' .. order .. id)
          if priority > open.floor or open.used < width then lanes[name] = open end
        end
        if priority < open.floor then open.floor = priority end
      end
      if field ~= '' then call('HSET', TASK_KEYS, field, id) end
      local last = #jobs
      jobs[last + 1] = id
      jobs[last + 2] = pack_record(NUMBERS .. 'sc0', state, flags, width, 0, 0, run_at, now, 0, 0, 0,
        order, sub(head, HEAD_TEXTS))
      bodies[last + 1], bodies[last + 2] = id, values[i + 3]
      ids[last + 1], ids[last + 2] = 0, id
      queues[queue] = true
    end
  end

  write('HSET', JOBS, jobs)
  write('HSET', BODIES, bodies)
  write('ZADD', IDS, ids)
  write('ZADD', DUE, due)
  for queue, _ in pairs(queues) do use_queue(queue) end
  for _, lane in pairs(narrowed) do enter_again(lane) end
  for _, lane in pairs(lanes) do admit(lane) end
  write_lines()
  write_lanes()
  write_counts()
  if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
  return answer
end
