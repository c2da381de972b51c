-- Running jobs by queue: a walk over the index of the few that run.
SELECT queue, count(*) FROM job WHERE state = 3 GROUP BY queue;
