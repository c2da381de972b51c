-- Lock lanes in which jobs run, each named once, with how many of those will leave it. They exist:
-- only lanes without holders are deleted, so where one is missing, somebody else has settled those
-- jobs. Returns the lanes with what was free in them when the lock was given.
CREATE OR REPLACE FUNCTION lock_occupied_lanes(
    p_queue text[], p_lane text[], p_lane_jobs integer[],
    OUT queues text[], OUT lanes text[], OUT lane_jobs integer[], OUT free integer[]
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(x.queue), array_agg(x.lane), array_agg(x.lane_jobs), array_agg(x.free)
    INTO queues, lanes, lane_jobs, free
    FROM (
        SELECT l.queue, l.lane, u.lane_jobs, l.width - l.used AS free
        FROM unnest(p_queue, p_lane, p_lane_jobs) AS u (queue, lane, lane_jobs)
        JOIN lane l ON l.queue = ANY (ARRAY[u.queue]) AND l.lane = ANY (ARRAY[u.lane])
        ORDER BY l.queue, l.lane FOR NO KEY UPDATE OF l
    ) x;
END $$;
