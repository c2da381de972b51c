-- The lanes of settled jobs whose outcome holds them, with for how many seconds.
CREATE OR REPLACE FUNCTION held_lanes(
    p_id uuid[], p_hold double precision[], p_settled uuid[],
    OUT queues text[], OUT lanes text[], OUT seconds double precision[]
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(j.queue), array_agg(j.lane), array_agg(t.seconds) INTO queues, lanes, seconds
    FROM unnest(p_id, p_hold) AS t (id, seconds)
    CROSS JOIN LATERAL (
        SELECT j.queue, j.lane FROM job j WHERE j.id = t.id
        UNION ALL
        SELECT h.queue, h.lane FROM history h WHERE h.id = t.id
    ) j
    WHERE t.seconds > 0 AND j.lane IS NOT NULL AND t.id = ANY (p_settled);
END $$;
