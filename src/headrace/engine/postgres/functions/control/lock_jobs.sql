-- Lock jobs, either those with a lane (whose lanes are locked) or those without, in the order of
-- ids, and answer which there are.
CREATE OR REPLACE FUNCTION lock_jobs(p_laned boolean, p_id uuid[])
RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT j.id FROM job j WHERE j.id = ANY (p_id) AND (j.lane IS NOT NULL) = p_laned
        ORDER BY j.id FOR UPDATE
    );
END $$;
