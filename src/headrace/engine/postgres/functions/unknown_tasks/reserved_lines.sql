-- Queues and tasks of reserved jobs, among these queues (NULL: all) that are not paused, whose task a
-- worker knows. One step into the index job_reserved leads from each to the next.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION reserved_lines(
    p_worker integer, p_queues text[], OUT queues text[], OUT tasks text[]
)
LANGUAGE plpgsql AS $$
BEGIN
    WITH RECURSIVE line AS (
        (SELECT j.queue, j.task FROM job j
         WHERE j.state = 2 AND j.reserved ORDER BY j.queue, j.task LIMIT 1)
        UNION ALL
        SELECT next.queue, next.task
        FROM line l
        CROSS JOIN LATERAL (
            SELECT j.queue, j.task FROM job j
            WHERE j.state = 2 AND j.reserved AND (j.queue, j.task) > (l.queue, l.task)
            ORDER BY j.queue, j.task LIMIT 1
        ) next
    )
    SELECT array_agg(l.queue), array_agg(l.task) INTO queues, tasks
    FROM line l
    JOIN worker w ON w.number = p_worker
    WHERE (p_queues IS NULL OR l.queue = ANY (p_queues))
        AND (w.tasks IS NULL OR l.task = ANY (w.tasks))
        AND NOT EXISTS (SELECT FROM queue q WHERE q.name = l.queue AND q.paused);
END $$;
