#!lua
-- insert: store jobs in the order of the call; an id or a (task, key) that exists is not stored.
-- KEYS meta jobs bodies ids task_keys due queues children unfinished signals
-- USES clock job lanes record
-- ARGV 1 offset, then four for each job: id  head  key field (task, zero, key; '' none)  body
--   head: struct of width, flags, priority, run_at or 0, delay; then with zero bytes between them
--   queue, lane ('' none), task, key, source, and of a child parent and group, as the job's record has
--   them; last, if a record is to be written as well, three: kind, zero byte, key  body  version ('' any)
-- Answers one id for each job, with "=" in front if it existed before; or, if the record has another
-- version, that one alone, and nothing has been written.
-- A call that is repeated finds its own ids and changes nothing, so a lost answer does no harm. The
-- id is looked at first: whose key it brings does not matter then.

local HEAD_TEXTS = 22

local jobs_end = #ARGV
if jobs_end % 4 == 0 then
  jobs_end = jobs_end - 3
  local head, version = put_record(ARGV[jobs_end + 1], ARGV[jobs_end + 2], ARGV[jobs_end + 3])
  if not head then return version end
end

local given = {}
for i = 2, jobs_end, 4 do given[#given + 1] = ARGV[i] end
local known = read(JOBS, given)
local number = call('HINCRBY', META, 'seq', #given) - #given

local jobs, bodies, ids, due, children, unfinished = {}, {}, {}, {}, {}, {}
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
  local i = 4 * n - 2
  local head, field = ARGV[i + 1], ARGV[i + 2]
  local existing = seen[id] or known[n] and id or field ~= '' and call('HGET', TASK_KEYS, field)
  seen[id] = existing or id
  if existing then
    answer[n] = '=' .. existing
  else
    answer[n] = id
    local width, flags, priority, run_at, delay, queue, lane, rest =
      struct.unpack('<HBhddss', head)
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
      if open.waiting == 0 and open.used < width then
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
    if flags >= CHILD then
      local parent, group = family_of(sub(head, rest))
      put(children, parent .. '\0' .. id)
      put(unfinished, parent .. '\0' .. group .. '\0' .. id)
    end
    local last = #jobs
    jobs[last + 1] = id
    jobs[last + 2] = pack_record(NUMBERS .. 'sc0', state, flags, width, 0, 0, run_at, now, 0, 0, 0,
      order, sub(head, HEAD_TEXTS))
    bodies[last + 1], bodies[last + 2] = id, ARGV[i + 3]
    ids[last + 1], ids[last + 2] = 0, id
    queues[queue] = true
  end
end

write('HSET', JOBS, jobs)
write('HSET', BODIES, bodies)
write('ZADD', IDS, ids)
write('ZADD', DUE, due)
write('ZADD', CHILDREN, children)
write('ZADD', UNFINISHED, unfinished)
for queue, _ in pairs(queues) do call('HSETNX', QUEUES, queue, 0) end
for _, lane in pairs(narrowed) do enter_again(lane) end
for _, lane in pairs(lanes) do admit(lane) end
write_lines()
write_lanes()
write_counts()
if made_ready > 0 then call('PUBLISH', SIGNALS, 'work') end
return answer
