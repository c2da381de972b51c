#!lua
-- insert: store jobs that no job has made and that may start at any time, as nearly all are.
-- KEYS
-- USES clock layout job lanes queues insert
-- ARGV 1 offset, then jobs as library/jobs/insert.lua reads them
-- Answers an id for each job, with "=" in front if it existed before.

return insert_jobs(ARGV, 2)
