-- Ready jobs by queue, from the index job_ready alone. Those in queue_reserved.sql are others.
SELECT queue, count(*), min(run_at) FROM job WHERE state = 2 AND reserved = 0 GROUP BY queue;
