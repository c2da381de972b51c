-- Whether a job of this lane is parked, also one that somebody else is changing.
CREATE OR REPLACE FUNCTION is_any_parked(p_queue text, p_lane text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM job j
        WHERE j.lane = p_lane AND j.queue = p_queue AND j.state = 0 AND j.parked IS NOT NULL
    );
END $$;
