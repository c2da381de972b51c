-- How many of the best jobs are in which line: that of a queue (its task is NULL), or that of the
-- reserved jobs of a queue and a task. Jobs whose time to start is over at `p_expiring` do not count; NULL:
-- there are none. Locks nothing.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION best_lines(
    p_limit integer, p_from bigint, p_expiring timestamptz,
    INOUT queues text[], INOUT tasks text[], OUT amounts integer[]
) LANGUAGE plpgsql AS $$
DECLARE
    expiring timestamptz := p_expiring;
BEGIN
    SELECT array_agg(x.queue), array_agg(x.task), array_agg(x.amount) INTO queues, tasks, amounts
    FROM (
        SELECT best.queue, best.task, count(*)::integer AS amount
        FROM (
            SELECT b.queue, b.task
            FROM unnest(queues, tasks) AS line (queue, task)
            CROSS JOIN LATERAL (
                (SELECT j.queue, NULL AS task, j.priority, j.seq FROM job j
                 WHERE line.task IS NULL AND j.queue = line.queue
                     AND j.state = 2 AND NOT j.reserved AND j.seq >= p_from AND
                     -- include: not_expired
                 ORDER BY j.priority DESC, j.seq LIMIT p_limit)
                UNION ALL
                (SELECT j.queue, j.task, j.priority, j.seq FROM job j
                 WHERE j.queue = line.queue AND j.task = line.task AND j.state = 2 AND j.reserved AND
                     -- include: not_expired
                 ORDER BY j.priority DESC, j.seq LIMIT p_limit)
            ) b
            ORDER BY b.priority DESC, b.seq LIMIT p_limit
        ) best
        GROUP BY best.queue, best.task
    ) x;
END $$;
