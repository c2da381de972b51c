-- Make parked jobs ready whose time has come, and answer in which queues, and the least seq of them. They
-- keep their places, so no lane has to be locked; those that somebody else is changing are passed over.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION parked_due(p_moment timestamptz, OUT queues text[], OUT first_seq bigint)
LANGUAGE plpgsql AS $$
BEGIN
    WITH due AS (
        UPDATE job SET state = 2
        WHERE ctid = ANY (ARRAY(
            SELECT j.ctid FROM job j
            WHERE j.state = 0 AND j.parked IS NOT NULL AND j.run_at <= p_moment
            ORDER BY j.run_at LIMIT 500
            FOR NO KEY UPDATE SKIP LOCKED
        ))
        RETURNING queue, seq
    )
    SELECT coalesce(array_agg(DISTINCT d.queue), '{}'), min(d.seq) INTO queues, first_seq FROM due d;
END $$;
