-- Make the best parked jobs of one lane ready, `p_most` (NULL: all) of them, so that a claim looks at them
-- again; answers how many. Its key is locked. Those that somebody else is changing are passed over: a claim
-- asks for the key's lock and looks again, whoever cancels one has the best of the others looked at
-- again, and one that is due is ready at once.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION parked_again(
    p_moment timestamptz, p_queue text, p_lane text, p_most integer
)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    amount integer;
BEGIN
    UPDATE job SET state = 2, run_at = p_moment
    WHERE ctid = ANY (ARRAY(
        SELECT j.ctid FROM job j
        WHERE j.lane = p_lane AND j.queue = p_queue AND j.state = 0 AND j.parked IS NOT NULL
        ORDER BY j.priority DESC, j.seq LIMIT p_most
        FOR NO KEY UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS amount = ROW_COUNT;
    RETURN amount;
END $$;
