-- Those of these jobs, whose locks we have, that should have started by now and have not. The entry is read
-- again, too: their time may have been put off before they were locked.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION expired_jobs(p_moment timestamptz, p_id uuid[])
RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT j.id FROM job j
        WHERE j.id = ANY (p_id) AND j.state + 0 < 3 AND j.attempt = 0
            AND (SELECT x.at FROM expiry x WHERE x.job_id = j.id) <= p_moment
    );
END $$;
