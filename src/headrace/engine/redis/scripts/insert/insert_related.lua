#!lua
-- insert_related: store jobs of which some have a parent, or jobs and a record in one step.
-- KEYS children unfinished
-- USES clock layout job lanes record queues insert
-- ARGV 1 offset  2 to 4 the record: kind, zero byte, key ('' none)  body  version ('' whatever is there)
--   then jobs as library/insert.lua reads them
-- Answers as insert; or, if the record has another version, that one alone, and nothing is written.
-- `children` has parent, zero, id; library/children.lua tells about `unfinished`. A script of its own,
-- because what it needs beyond insert would cost every small call of insert a hundredth.

if ARGV[2] ~= '' then
  local head, version = put_record(ARGV[2], ARGV[3], ARGV[4])
  if not head then return version end
end
local answer = insert_jobs(5)
local children, unfinished = {}, {}
for n, id in ipairs(answer) do
  local head = ARGV[2 + 4 * n]
  local _, flags, _, _, _, _, _, rest = struct.unpack(HEAD, head)
  if flags >= CHILD and sub(id, 1, 1) ~= '=' then
    local parent, group = family_of(sub(head, rest))
    put(children, parent .. '\0' .. id)
    put(unfinished, parent .. '\0' .. group .. '\0' .. id)
  end
end
write('ZADD', CHILDREN, children)
write('ZADD', UNFINISHED, unfinished)
return answer
