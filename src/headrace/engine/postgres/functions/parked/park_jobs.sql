-- Schedule ready jobs, whose locks we have, for the times at which their lanes may let them start, rounded
-- up; they keep their places.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION park_jobs(p_id uuid[], p_time double precision[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE job j SET state = 0, run_at = parked_time(p.at), reserved = false,
        parked = coalesce(j.parked, j.hold::integer + 2 * j.pinned::integer),
        hold = true, pinned = true
    FROM unnest(p_id, p_time) AS p (id, at)
    WHERE j.id = ANY (ARRAY[p.id]) AND j.state + 0 = 2;
END $$;
