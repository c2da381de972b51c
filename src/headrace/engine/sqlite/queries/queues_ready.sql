-- Queues that have ready jobs and are not paused. One step into the index job_ready leads from each to
-- the next, so queues without ready jobs, however many there are, cost nothing.
WITH RECURSIVE ready (name) AS (
    SELECT min(queue) FROM job WHERE state = 2 AND reserved = 0
    UNION ALL
    SELECT (SELECT min(queue) FROM job WHERE state = 2 AND reserved = 0 AND queue > ready.name)
    FROM ready WHERE ready.name IS NOT NULL
)
SELECT name FROM ready
WHERE name IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.name = ready.name AND queue.paused = 1);
