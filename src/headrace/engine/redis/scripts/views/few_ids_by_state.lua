#!lua flags=no-writes
-- few_ids_by_state: the ids of all jobs in some states, if they are few.
-- KEYS due ready reserved waiting held finished
-- USES clock
-- ARGV 1 offset  2 how many are few  then words: scheduled, pending, running, finished
-- Answers the ids in no order; some may come twice, or be of jobs that are in another state by now.
-- Answers nothing if there are too many: then a walk over all jobs by id finds them soon.

local lines = {
  scheduled = { DUE }, pending = { READY, RESERVED, WAITING }, running = { HELD }, finished = {},
}
-- In front of the id, members of the lines of pending jobs have the job's order.
local skip = { scheduled = 1, pending = 18, running = 1 }

local total, ids = 0, {}
for i = 3, #ARGV do
  for _, index in ipairs(lines[ARGV[i]]) do total = total + call('ZCARD', index) end
  if ARGV[i] == 'finished' then total = total + call('LLEN', FINISHED) end
end
if total > tonumber(ARGV[2]) then return false end
for i = 3, #ARGV do
  if ARGV[i] == 'finished' then
    for _, place in ipairs(call('LRANGE', FINISHED, 0, -1)) do ids[#ids + 1] = sub(place, 9) end
  end
  for _, index in ipairs(lines[ARGV[i]]) do
    for _, member in ipairs(call('ZRANGE', index, 0, -1)) do
      ids[#ids + 1] = sub(string.match(member, '[^%z]*$'), skip[ARGV[i]])
    end
  end
end
return ids
