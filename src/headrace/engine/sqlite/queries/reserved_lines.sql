-- Queues and tasks of reserved jobs whose task a worker knows. One step into the index job_reserved
-- leads from each to the next, however many jobs there are.
WITH RECURSIVE line (queue, task) AS (
    SELECT * FROM (
        SELECT queue, task FROM job WHERE state = 2 AND reserved = 1 ORDER BY queue, task LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.task
    FROM line, job AS next
    WHERE next.seq = coalesce(
        (SELECT seq FROM job
         WHERE state = 2 AND reserved = 1 AND queue = line.queue AND task > line.task
         ORDER BY task LIMIT 1),
        (SELECT seq FROM job
         WHERE state = 2 AND reserved = 1 AND queue > line.queue
         ORDER BY queue, task LIMIT 1)
    )
)
SELECT line.queue, line.task
FROM line, worker
WHERE worker.id = ?1
    AND (worker.tasks IS NULL OR line.task IN (SELECT value FROM json_each(worker.tasks)));
