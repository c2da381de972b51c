#!lua flags=no-writes
-- get: jobs as people see them, in one moment.
-- USES clock layout job body shown_jobs
-- ARGV 1 offset, then ids
-- Answers what the library `shown_jobs` says.

local ids = {}
for i = 2, #ARGV do ids[#ids + 1] = ARGV[i] end
return see(ids, {})
