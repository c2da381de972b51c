-- claim: lease ready jobs of several queues by priority, then arrival.
-- KEYS jobs bodies ready reserved queues held workers
-- The ready lines of the queues, and of reserved jobs that the worker knows, are merged; each is read in small pieces, and what is taken from a
-- line is its beginning, so it is removed in one step.

-- `name` is what the members of a line begin with: a queue, or a queue and a task.
local function open_line(index, name, queue, piece)
  return { index = index, name = name, queue = queue, skip = #name + 2, piece = piece,
    from = '[' .. name .. '\0', at = 0, members = {} }
end

local function advance(line)
  line.at = line.at + 1
  if line.at > #line.members then
    line.members = call('ZRANGE', line.index, line.from, '(' .. line.name .. '\1', 'BYLEX', 'LIMIT', 0,
      line.piece)
    line.at = 1
    if #line.members > 0 then line.from = '(' .. line.members[#line.members] end
  end
  local member = line.members[line.at]
  line.order = member and sub(member, line.skip, line.skip + 16)
  return member ~= nil
end

-- Queues that have ready jobs now: one step leads from each to the next.
local function queues_with_ready_jobs()
  local queues, from = {}, '-'
  while true do
    local member = call('ZRANGE', READY, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return queues end
    local queue = string.match(member, '^[^%z]+')
    queues[#queues + 1] = queue
    from = '[' .. queue .. '\1'
  end
end

-- The tasks that a worker knows, or nothing if it knows all; see the script `register`.
local function tasks_of(worker_id)
  local worker = call('HGET', WORKERS, worker_id)
  local tasks = cmsgpack.unpack(sub(worker, string.find(worker, '\0', 1, true) + 9)).tasks
  if not tasks then return nil end
  local known = {}
  for _, task in ipairs(tasks) do known[task] = true end
  return known
end

-- Lines of reserved jobs whose task the worker knows, as queue and task: one step leads from each to
-- the next. `named` nil: of all queues.
local function reserved_lines(worker_id, named)
  local lines, from, tasks, served = {}, '-', nil, {}
  for _, queue in ipairs(named or {}) do served[queue] = true end
  while true do
    local member = call('ZRANGE', RESERVED, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return lines end
    if from == '-' then tasks = tasks_of(worker_id) end
    local queue, task = string.match(member, '^([^%z]+)%z([^%z]+)')
    if (not named or served[queue]) and (not tasks or tasks[task])
      and call('HGET', QUEUES, queue) ~= '1' then
      lines[#lines + 1] = { queue, task }
    end
    from = '[' .. queue .. '\0' .. task .. '\1'
  end
end

local function open_lines(worker_id, named, limit)
  local queues, known, fronts = {}, {}, {}
  for _, queue in ipairs(named or queues_with_ready_jobs()) do
    if not known[queue] and call('HGET', QUEUES, queue) ~= '1' then queues[#queues + 1] = queue end
    known[queue] = true
  end
  local reserved = reserved_lines(worker_id, named)
  local total = #queues + #reserved
  local piece = total == 1 and limit or math.max(10, math.ceil(2 * limit / total))
  for _, queue in ipairs(queues) do
    local line = open_line(READY, queue, queue, piece)
    if advance(line) then fronts[#fronts + 1] = line end
  end
  for _, each in ipairs(reserved) do
    local line = open_line(RESERVED, each[1] .. '\0' .. each[2], each[1], piece)
    if advance(line) then fronts[#fronts + 1] = line end
  end
  return fronts
end

local function merge(fronts, limit)
  local taken, last = {}, {}
  while #taken < limit and #fronts > 0 do
    local best = 1
    for i = 2, #fronts do
      if fronts[i].order < fronts[best].order then best = i end
    end
    local line = fronts[best]
    local member = line.members[line.at]
    last[line] = member
    count(running, line.queue, 1)
    taken[#taken + 1] = sub(member, line.skip + 17)
    if #taken < limit and not advance(line) then table.remove(fronts, best) end
  end
  return taken, last
end

-- One line needs no merging, if what is wanted of it has been read.
local function take_from(line, limit)
  local taken, members, skip = {}, line.members, line.skip + 17
  local total = math.min(limit, #members)
  for i = 1, total do taken[i] = sub(members[i], skip) end
  count(running, line.queue, total)
  return taken, { [line] = members[total] }
end

-- Answers ids in the order in which they have to start.
local function take(worker_id, named, limit)
  local fronts = open_lines(worker_id, named, limit)
  local taken, last
  if #fronts == 1 and (#fronts[1].members >= limit or #fronts[1].members < fronts[1].piece) then
    taken, last = take_from(fronts[1], limit)
  else
    taken, last = merge(fronts, limit)
  end
  for line, member in pairs(last) do
    call('ZREMRANGEBYLEX', line.index, '[' .. line.name .. '\0', '[' .. member)
  end
  return taken
end

-- Adds id, record and body of each job in turn to `answer`. `named` nil: all queues.
local function lease(answer, worker_id, name, named, limit)
  local worker = worker_id .. '\1' .. name
  local taken = take(worker_id, named, limit)
  local old, body = read(JOBS, taken), read(BODIES, taken)
  local changed, holding, left = {}, {}, {}
  for n, id in ipairs(taken) do
    local _, flags, width, token, attempt, run_at, created = unpack_record(NUMBERS, old[n])
    local record = pack_record(NUMBERS .. 'c0c0', RUNNING, flags, width, token + 1, attempt + 1,
      run_at, created, now, 0, #worker, sub(old[n], TEXTS), worker)
    if width > NARROW and bit.band(flags, PINNED) == 0 then
      local queue, lane = unpack_record('ss', record, QUEUE)
      if lane ~= '' then
        local wide = name_lane(queue .. '\0' .. lane, queue, width)
        if wide.change == 0 then left[#left + 1] = wide end
        wide.change = wide.change + 1
      end
    end
    changed[2 * n - 1], changed[2 * n] = id, record
    holding[2 * n - 1], holding[2 * n] = 0, worker .. '\0' .. id
    answer[3 * n - 1], answer[3 * n], answer[3 * n + 1] = id, record, body[n]
  end
  write('HSET', JOBS, changed)
  write('ZADD', HELD, holding)
  open_lanes(left)
  for _, lane in ipairs(left) do lane.heads, lane.change = lane.heads - lane.change, 0 end
  made_ready = made_ready - #taken
end
