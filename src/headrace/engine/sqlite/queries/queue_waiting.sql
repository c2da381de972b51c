-- Waiting jobs by queue, from the index job_waiting alone.
SELECT queue, count(*), min(run_at) FROM job WHERE state = 1 GROUP BY queue;
