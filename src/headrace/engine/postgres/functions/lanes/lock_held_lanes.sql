-- Lock lanes in which jobs run, each named once, with how many of those will leave it. They exist:
-- only lanes without holders are deleted, so where one is missing, somebody else has settled those
-- jobs. Answers the lanes with what was free in them when the lock was given.
CREATE OR REPLACE FUNCTION lock_held_lanes(
    p_queue text[], p_lane text[], p_leaving integer[],
    OUT queues text[], OUT lanes text[], OUT leaving integer[], OUT free integer[]
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(x.queue), array_agg(x.lane), array_agg(x.leaving), array_agg(x.free)
    INTO queues, lanes, leaving, free
    FROM (
        SELECT l.queue, l.lane, u.leaving, l.width - l.used AS free
        FROM unnest(p_queue, p_lane, p_leaving) AS u (queue, lane, leaving)
        JOIN lane l ON l.queue = u.queue AND l.lane = u.lane
        ORDER BY l.queue, l.lane FOR NO KEY UPDATE OF l
    ) x;
END $$;
