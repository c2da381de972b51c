-- Scheduled jobs by queue.
SELECT queue, count(*) FROM job WHERE state = 0 GROUP BY queue;
