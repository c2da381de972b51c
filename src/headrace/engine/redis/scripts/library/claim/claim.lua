-- claim: lease ready jobs of several queues by priority, then arrival.
-- KEYS jobs bodies ready reserved queues held workers claimants expiry idle
-- The ready lines of the queues, and of reserved jobs that the worker knows, are merged; each is read
-- in small pieces, and what is taken from a line is its beginning, so it is removed in one step.
-- `claimants` has of a worker its name, then queue and task of each line of reserved jobs that it may
-- claim from, with a zero byte between them. Reading all its tasks and all lines at each claim would
-- cost more than the claim. An entry has every such line that is not empty, or does not exist: it is
-- forgotten when the worker knows other tasks, and all are when a line begins (library/jobs/settle.lua).

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

-- A set of the tasks that a worker has said it knows; it may know all, see the script `register`.
local function known_tasks(worker, name)
  local tasks, known = cmsgpack.unpack(sub(worker, #name + 10)).tasks, {}
  for _, task in ipairs(tasks or {}) do known[task] = true end
  if not tasks then setmetatable(known, { __index = function() return true end }) end
  return known
end

-- What `claimants` has of a worker. One step leads from each line to the next.
local function look_up_claimant(worker_id)
  local worker = call('HGET', WORKERS, worker_id)
  local name = string.match(worker, '^[^%z]+')
  local parts, from, known = { name }, '-', nil
  while true do
    local member = call('ZRANGE', RESERVED, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then break end
    known = known or known_tasks(worker, name)
    local line, task = string.match(member, '^([^%z]+%z([^%z]+))')
    if known[task] then parts[#parts + 1] = line end
    from = '[' .. line .. '\1'
  end
  local found = table.concat(parts, '\0')
  call('HSET', CLAIMANTS, worker_id, found)
  return found
end

-- Lines of reserved jobs that a worker may claim from, with their first jobs. `served` has the queues
-- that it asks for and whether they are paused, and is added to. Lines that are empty by now are
-- forgotten: who puts a job into one again has every worker look.
local function open_reserved(fronts, worker_id, claimant, name, named, served, piece)
  local left, ended = { name }, false
  for queue, task in string.gmatch(claimant, '%z([^%z]+)%z([^%z]+)') do
    local line_name = queue .. '\0' .. task
    if not named and served[queue] == nil then
      served[queue] = call('HGET', QUEUES, queue) ~= '1'
    end
    local line = served[queue] and open_line(RESERVED, line_name, queue, piece)
    if line and not advance(line) then
      ended = true
    else
      if line then fronts[#fronts + 1] = line end
      left[#left + 1] = line_name
    end
  end
  if ended then call('HSET', CLAIMANTS, worker_id, table.concat(left, '\0')) end
end

local function open_lines(worker_id, claimant, name, named, limit)
  local queues, served, fronts = {}, {}, {}
  for _, queue in ipairs(named or queues_with_ready_jobs()) do
    if served[queue] == nil then
      served[queue] = call('HGET', QUEUES, queue) ~= '1'
      if served[queue] then queues[#queues + 1] = queue end
    end
  end
  local reserved = #claimant == #name and 0 or select(2, string.gsub(claimant, '%z', '')) / 2
  local total = #queues + reserved
  local piece = total == 1 and limit or math.max(10, math.ceil(2 * limit / total))
  for _, queue in ipairs(queues) do
    local line = open_line(READY, queue, queue, piece)
    if advance(line) then fronts[#fronts + 1] = line end
  end
  if reserved > 0 then
    open_reserved(fronts, worker_id, claimant, name, named, served, piece)
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

-- Answers ids in the order in which they have to start. Where there are rates, library/claim/rated_claim.lua has
-- another one.
local function take(worker_id, claimant, name, named, limit)
  local fronts = open_lines(worker_id, claimant, name, named, limit)
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

-- Adds id, record and body of each job in turn to `answer`. `named` nil: all queues. Answers the worker's
-- name, then id and record of each job that was taken from its line but not leased: its time to start is
-- over, and the caller has to end it.
local function lease(answer, worker_id, named, limit)
  local claimant = call('HGET', CLAIMANTS, worker_id) or look_up_claimant(worker_id)
  local name = string.match(claimant, '^[^%z]+')
  local worker = worker_id .. '\1' .. name
  local taken = take(worker_id, claimant, name, named, limit)
  local old, body = read(JOBS, taken), read(BODIES, taken)
  local changed, holding, left, expired = {}, {}, {}, {}
  local last, told = 0, #answer
  for n, id in ipairs(taken) do
    local _, flags, width, token, attempt, run_at, created, _, before = unpack_record(NUMBERS, old[n])
    if flags >= EXPIRES and attempt == 0 and tonumber(call('ZSCORE', EXPIRY, id) or LATE) <= now then
      expired[#expired + 1] = { id = id, record = old[n] }
    else
      local pinned = bit.band(flags, PINNED) ~= 0
      if flags >= PARKED then
        -- While it was parked it was pinned, whatever it was before.
        flags = flags - PARKED - (pinned and before == UNPINNED and PINNED or 0)
      end
      local record = pack_record(NUMBERS .. 'c0c0', RUNNING, flags, width, token + 1, attempt + 1,
        run_at, created, now, 0, #worker, sub(old[n], TEXTS), worker)
      if width > NARROW and not pinned then
        local queue, lane = unpack_record('ss', record, QUEUE)
        if lane ~= '' then
          local wide = name_lane(queue .. '\0' .. lane, queue, width)
          if wide.change == 0 then left[#left + 1] = wide end
          wide.change = wide.change + 1
        end
      end
      changed[last + 1], changed[last + 2] = id, record
      holding[last + 1], holding[last + 2] = 0, worker .. '\0' .. id
      answer[told + 1], answer[told + 2], answer[told + 3] = id, record, body[n]
      last, told = last + 2, told + 3
    end
  end
  write('HSET', JOBS, changed)
  write('ZADD', HELD, holding)
  open_lanes(left)
  for _, lane in ipairs(left) do lane.heads, lane.change = lane.heads - lane.change, 0 end
  made_ready = made_ready - last / 2
  return name, expired
end

-- So many jobs that have expired are ended by one call, or a few more.
local MOST_EXPIRED = 500

-- Brings the jobs of an answer behind a place in it into their order.
local function put_in_order(answer, told)
  local jobs = {}
  for i = told + 1, #answer, 3 do
    local order = sub(answer[i + 1], TEXTS, ORDER_END)
    jobs[#jobs + 1] = { order = order, id = answer[i], record = answer[i + 1], body = answer[i + 2] }
  end
  table.sort(jobs, function(one, other) return one.order < other.order end)
  for n, job in ipairs(jobs) do
    local i = told + 3 * n
    answer[i - 2], answer[i - 1], answer[i] = job.id, job.record, job.body
  end
end

-- As `lease`, of which it answers the worker's name. Jobs that it meets too late are ended, and others taken
-- in their place. With very many of them it stops early, and has somebody come again.
local function lease_in_time(answer, worker_id, named, limit)
  local told, ended = #answer, 0
  local name, expired = lease(answer, worker_id, named, limit)
  while #expired > 0 do
    for _, each in ipairs(expired) do
      local job = decode(each.record)
      count(running, job.queue, -1)
      cancel_job(job, each.id, EXPIRED)
    end
    write_cancelled()
    ended = ended + #expired
    if ended >= MOST_EXPIRED then left_for_others = left_for_others + 1 end
    local left = ended < MOST_EXPIRED and limit - (#answer - told) / 3 or 0
    if left == 0 then break end
    name, expired = lease(answer, worker_id, named, left)
  end
  -- Who has the place of one that was ended may be better than others that were taken before.
  if ended > 0 then put_in_order(answer, told) end
  return name
end

-- Who found nothing may be handed the next job that comes in, as long as its lease is known to last.
-- Looking again writes nothing, unless that was renewed.
local function be_idle(worker_id, name, named, inbox, until_time)
  local queues = named and '\0' .. table.concat(named, '\0') .. '\0' or ''
  local idle = struct.pack('<d', until_time) .. name .. '\0' .. inbox .. '\0' .. queues
  if call('HGET', IDLE, worker_id) ~= idle then call('HSET', IDLE, worker_id, idle) end
end
