#!lua
-- follow: record outcomes and store the jobs that follow from those that count.
-- KEYS rates queue_rates
-- USES clock layout job lanes children waits expiry settle queues insert related follow
-- ARGV 1 offset  2 number of outcomes  then six for each as exchange reads them, each job once,
--   then for each outcome: number of its followers, and these as library/jobs/insert.lua reads them
-- Returns the refused ids. Where there are rates or holds it does nothing and returns nothing: the caller
-- has to run follow_rated.
-- A script runs alone, so the followers are there if and only if the outcome counted. Not in exchange:
-- that works when memory is full, and new jobs must not.

if call('EXISTS', RATES, QUEUE_RATES) > 0 then return false end
return follow_all(insert_related)
