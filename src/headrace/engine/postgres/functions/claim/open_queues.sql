-- Queues that a claim has to look at: those with ready jobs, or these (each once), and none that is
-- paused. One step into the index job_ready leads from each to the next, however many jobs there are
-- and however many queues have none. Jobs that came before `p_from` are passed over.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION open_queues(p_queues text[], p_from bigint)
RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF p_queues IS NOT NULL THEN
        RETURN ARRAY(
            SELECT DISTINCT u.name FROM unnest(p_queues) AS u (name)
            WHERE NOT EXISTS (SELECT FROM queue q WHERE q.name = u.name AND q.paused)
        );
    END IF;
    RETURN ARRAY(
        WITH RECURSIVE used (name) AS (
            (SELECT j.queue FROM job j
             WHERE j.state = 2 AND NOT j.reserved AND j.seq >= p_from
             ORDER BY j.queue, j.priority DESC, j.seq LIMIT 1)
            UNION ALL
            SELECT next.queue
            FROM used u
            CROSS JOIN LATERAL (
                SELECT j.queue FROM job j
                WHERE j.state = 2 AND NOT j.reserved AND j.seq >= p_from AND j.queue > u.name
                ORDER BY j.queue, j.priority DESC, j.seq LIMIT 1
            ) next
        )
        SELECT u.name FROM used u
        WHERE NOT EXISTS (SELECT FROM queue q WHERE q.name = u.name AND q.paused)
    );
END $$;
