-- Cancel all that wait in a lane, which is locked; with `p_holders` also all that hold a place, of which
-- running ones are asked to stop and keep it until they do. Scheduled ones are left alone, unless they
-- keep their place: for a retry, or because they are parked.
--
-- Which running jobs are in a lane no index knows, because every claim would pay for it: all running
-- jobs are looked at.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION clear_lane(
    p_moment timestamptz, p_queue text, p_lane text, p_holders boolean, p_reason text,
    OUT cancelled uuid[], OUT stopping uuid[], OUT parked boolean
) LANGUAGE plpgsql AS $$
DECLARE
    met uuid[];
    step record;
BEGIN
    met := ARRAY(
        SELECT j.id FROM job j WHERE j.queue = p_queue AND j.lane = p_lane AND j.state = 1
        UNION ALL
        SELECT j.id FROM job j
        WHERE p_holders AND j.queue = p_queue AND j.lane = p_lane
            AND j.lane IS NOT NULL AND (j.state = 2 OR j.pinned)
        UNION ALL
        SELECT j.id FROM job j
        WHERE p_holders AND j.queue = p_queue AND j.lane = p_lane AND j.state = 3 AND NOT j.pinned
    );
    met := lock_jobs(true, met);
    SELECT * INTO step FROM cancel_unstarted(p_moment, true, met, p_reason);
    cancelled := coalesce(step.ids, '{}');
    parked := step.parked_lanes IS NOT NULL;
    stopping := '{}';
    IF p_holders THEN
        stopping := cancel_running(true, met, p_reason);
    END IF;
    IF step.lanes IS NOT NULL THEN
        PERFORM fill_lanes(p_moment, step.queues, step.lanes, step.freed);
    END IF;
END $$;
