-- Lock the keys of these queues and lanes, except those whose numbers are known; in their order, or, unless
-- `p_wait`, only those that nobody else has. Keys that do not exist need no lock: nobody claims by them.
CREATE OR REPLACE FUNCTION lock_rates(
    p_queue text[], p_lane text[], p_known bigint[], p_wait boolean
)
RETURNS rate[] LANGUAGE plpgsql AS $$
DECLARE
    queues text[]; lanes text[];
BEGIN
    SELECT array_agg(u.queue), array_agg(u.lane) INTO queues, lanes
    FROM (
        SELECT u.queue, u.lane FROM unnest(p_queue, p_lane) AS u (queue, lane)
        WHERE u.lane IS NOT NULL
        UNION
        SELECT u.queue, '' FROM unnest(p_queue) AS u (queue)
    ) u;
    IF p_wait THEN
        RETURN ARRAY(
            SELECT r
            FROM unnest(queues, lanes) AS u (queue, lane)
            JOIN rate r ON r.lane = ANY (ARRAY[u.lane]) AND r.queue = u.queue
            WHERE r.number <> ALL (p_known)
            ORDER BY r.queue, r.lane FOR NO KEY UPDATE OF r
        );
    END IF;
    RETURN ARRAY(
        SELECT r
        FROM unnest(queues, lanes) AS u (queue, lane)
        JOIN rate r ON r.lane = ANY (ARRAY[u.lane]) AND r.queue = u.queue
        WHERE r.number <> ALL (p_known)
        FOR NO KEY UPDATE OF r SKIP LOCKED
    );
END $$;
