#!lua flags=no-writes
-- queues: every queue with its depth, in one moment.
-- KEYS queues counts ready reserved waiting
-- USES clock layout job age
-- ARGV 1 offset
-- Answers for each queue: name  paused  scheduled  waiting  ready  running  age of the oldest ready
-- job in seconds ('' none)  then task, number and age of the oldest in turn of its reserved jobs.

-- One step leads from each task to the next.
local function reserved_of(queue)
  local found, from = {}, '[' .. queue .. '\0'
  while true do
    local member = call('ZRANGE', RESERVED, from, '(' .. queue .. '\1', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return found end
    local line = string.match(member, '^[^%z]+%z[^%z]+')
    local total = call('ZLEXCOUNT', RESERVED, '[' .. line .. '\0', '(' .. line .. '\1')
    found[#found + 1] = sub(line, #queue + 2)
    found[#found + 1] = total
    found[#found + 1] = oldest_age(RESERVED, line, total)
    from = '[' .. line .. '\1'
  end
end

local answer = {}
local all = call('HGETALL', QUEUES)
for i = 1, #all, 2 do
  local queue = all[i]
  local low, high = '[' .. queue .. '\0', '(' .. queue .. '\1'
  local ready = call('ZLEXCOUNT', READY, low, high)
  for _, value in ipairs({
    queue, all[i + 1],
    call('HGET', COUNTS, SCHEDULED .. queue) or 0,
    call('ZLEXCOUNT', WAITING, low, high),
    ready,
    call('HGET', COUNTS, RUNNING .. queue) or 0,
    oldest_age(READY, queue, ready),
    reserved_of(queue),
  }) do answer[#answer + 1] = value end
end
return answer
