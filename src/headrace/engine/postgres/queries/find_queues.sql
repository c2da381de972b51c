-- Make queues known that have ready jobs and no row, and answer them: no claim looks at those. Rows
-- may be lost where a backup is read back under programs that have seen them. One probe for each
-- queue, not one look at each job.
WITH RECURSIVE used (name) AS (
    (SELECT j.queue FROM job j WHERE j.state = 2 ORDER BY j.queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT j.queue FROM job j WHERE j.state = 2 AND j.queue > u.name ORDER BY j.queue LIMIT 1
    )
    FROM used u WHERE u.name IS NOT NULL
)
INSERT INTO queue (name)
SELECT u.name FROM used u
WHERE u.name IS NOT NULL AND NOT EXISTS (SELECT FROM queue q WHERE q.name = u.name)
ORDER BY u.name
ON CONFLICT DO NOTHING
RETURNING name
