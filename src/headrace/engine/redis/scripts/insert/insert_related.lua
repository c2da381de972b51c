#!lua
-- insert_related: store jobs of which some have a parent or a time to start by, or jobs and a record in
-- one step.
-- KEYS
-- USES clock layout job lanes record queues insert related
-- ARGV 1 offset  2 to 4 the record: kind, zero byte, key ('' none)  body  version ('' whatever is there)
--   then jobs as library/jobs/insert.lua reads them; see library/jobs/related.lua
-- Answers as insert; or, if the record has another version, that one alone, and nothing is written.

if ARGV[2] ~= '' then
  local head, version = put_record(ARGV[2], ARGV[3], ARGV[4])
  if not head then return version end
end
return insert_related(ARGV, 5)
