#!lua
-- insert_rated: as insert_related, for jobs of which some have a rate.
-- KEYS
-- USES clock layout job lanes record queues rates insert related rated
-- ARGV 1 offset  2 to 4 the record, then jobs; see insert_related and library/claim/rated.lua
-- Answers as insert_related.

if ARGV[2] ~= '' then
  local head, version = put_record(ARGV[2], ARGV[3], ARGV[4])
  if not head then return version end
end
return insert_rated(ARGV, 5)
