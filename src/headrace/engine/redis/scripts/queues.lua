#!lua flags=no-writes
-- queues: every queue with its depth, in one moment.
-- KEYS queues counts ready waiting jobs
-- USES clock job
-- ARGV 1 offset
-- Answers for each queue: name  paused  scheduled  waiting  ready  running  age of the oldest ready
-- job in seconds ('' none). The ready line is sorted by priority, then arrival: the first few of
-- each priority are looked at, and one step leads to the next priority.

local LOOK = 10

local function oldest_ready(queue)
  local from, oldest = '[' .. queue .. '\0', nil
  while true do
    local members = call('ZRANGE', READY, from, '(' .. queue .. '\1', 'BYLEX', 'LIMIT', 0, LOOK)
    if #members == 0 then
      return oldest and string.format('%.6f', math.max(0, now - oldest)) or ''
    end
    local priority = sub(members[1], #queue + 2, #queue + 5)
    for _, member in ipairs(members) do
      local record = call('HGET', JOBS, sub(member, #queue + 19))
      local run_at = decode(record).run_at
      if not oldest or run_at < oldest then oldest = run_at end
    end
    from = '(' .. queue .. '\0' .. priority .. '\255'
  end
end

local answer = {}
local all = call('HGETALL', QUEUES)
for i = 1, #all, 2 do
  local queue = all[i]
  local low, high = '[' .. queue .. '\0', '(' .. queue .. '\1'
  for _, value in ipairs({
    queue, all[i + 1],
    call('HGET', COUNTS, SCHEDULED .. queue) or 0,
    call('ZLEXCOUNT', WAITING, low, high),
    call('ZLEXCOUNT', READY, low, high),
    call('HGET', COUNTS, RUNNING .. queue) or 0,
    oldest_ready(queue),
  }) do answer[#answer + 1] = value end
end
return answer
