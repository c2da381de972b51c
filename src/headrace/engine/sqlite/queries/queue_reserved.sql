-- Ready jobs that only workers that know their task are offered, by queue and task, from the index
-- job_reserved alone.
SELECT queue, task, count(*), min(run_at) FROM job WHERE state = 2 AND reserved = 1
GROUP BY queue, task;
