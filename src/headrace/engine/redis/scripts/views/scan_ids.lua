#!lua flags=no-writes
-- scan_ids: records of jobs whose ids are known.
-- USES clock records_by_state
-- ARGV 1 offset  2 number of ids  then these, then states and error types as the library
--   `records_by_state` reads them
-- Answers what the library `records_by_state` says.

local total = tonumber(ARGV[2])
return choose({ unpack(ARGV, 3, 2 + total) }, 3 + total, {})
