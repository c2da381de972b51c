-- Make all parked jobs of one lane ready, so that a claim looks at them again. Its key is locked. Those that
-- somebody else is changing are passed over: a claim asks for the key's lock and looks again,
-- whoever cancels one has those behind it looked at again, and one that is due is ready at once.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION parked_again(p_moment timestamptz, p_queue text, p_lane text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE job SET state = 2, run_at = p_moment
    WHERE ctid = ANY (ARRAY(
        SELECT j.ctid FROM job j
        WHERE j.lane = p_lane AND j.queue = p_queue AND j.lane IS NOT NULL
            AND (j.state = 2 OR j.pinned) AND j.state + 0 = 0 AND j.parked IS NOT NULL
        FOR NO KEY UPDATE SKIP LOCKED
    ));
END $$;
