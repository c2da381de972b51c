#!lua flags=no-writes
-- held: the jobs that are leased to one worker.
-- KEYS held jobs bodies
-- USES clock
-- ARGV 1 offset  2 worker id
-- Answers id, record and body of each job in turn.

local worker = ARGV[2]
local ids = {}
for n, member in ipairs(call('ZRANGE', HELD, '[' .. worker .. '\1', '(' .. worker .. '\2', 'BYLEX'))
do
  ids[n] = sub(member, string.find(member, '\0', 1, true) + 1)
end
local records, bodies = read(JOBS, ids), read(BODIES, ids)
local answer = {}
for n, id in ipairs(ids) do
  answer[3 * n - 2], answer[3 * n - 1], answer[3 * n] = id, records[n], bodies[n]
end
return answer
