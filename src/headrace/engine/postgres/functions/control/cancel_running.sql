-- Ask running jobs to stop; with a lane (locked) or without.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION cancel_running(p_laned boolean, p_id uuid[], p_reason text)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    asked uuid[];
BEGIN
    WITH asked AS (
        UPDATE job SET cancel_reason = coalesce(cancel_reason, p_reason)
        WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (p_id) AND j.state + 0 = 3 AND (j.lane IS NOT NULL) = p_laned
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING id
    )
    SELECT array_agg(a.id) INTO asked FROM asked a;
    PERFORM pg_notify(current_schema(), 'cancel:' || a.id) FROM unnest(asked) AS a (id);
    RETURN coalesce(asked, '{}');
END $$;
