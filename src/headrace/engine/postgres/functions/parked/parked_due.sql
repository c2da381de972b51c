-- Keep what callers' transactions have said of rates, and make parked jobs ready whose time has come. Answers
-- in which queues, the least seq of them, and whether keys are locked since. The jobs keep their places, so no
-- lane has to be locked; those that somebody else is changing are passed over.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION parked_due(p_moment timestamptz, OUT queues text[], OUT first_seq bigint, OUT said boolean)
LANGUAGE plpgsql AS $$
BEGIN
    said := EXISTS (SELECT FROM said_rate);
    IF said THEN
        PERFORM keep_said_rates(p_moment);
    END IF;
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
