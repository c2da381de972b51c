-- Lock lanes, made where they do not exist: a lock on a missing row locks nothing.
-- New jobs set the width of their lane, of several the last. Jobs that come back leave it as it is,
-- unless nobody is in the lane: then the width of the first counts.
CREATE OR REPLACE FUNCTION lock_lanes(
    p_queue text[], p_lane text[], p_width integer[], p_new boolean
)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lane AS l (queue, lane, width, used)
    SELECT DISTINCT ON (u.queue COLLATE "C", u.lane COLLATE "C") u.queue, u.lane, u.width, 0
    FROM unnest(p_queue, p_lane, p_width) WITH ORDINALITY AS u (queue, lane, width, ordinal)
    ORDER BY u.queue COLLATE "C", u.lane COLLATE "C",
        CASE WHEN p_new THEN -u.ordinal ELSE u.ordinal END
    -- A row that fails this WHERE is locked all the same.
    ON CONFLICT (queue, lane) DO UPDATE SET width = EXCLUDED.width
        WHERE l.width <> EXCLUDED.width AND (p_new OR l.used = 0);
END $$;
