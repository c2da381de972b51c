-- Ready jobs by queue, from the index job_ready alone.
SELECT queue, count(*), min(run_at) FROM job WHERE state = 2 GROUP BY queue;
