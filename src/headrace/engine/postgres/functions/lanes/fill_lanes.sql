-- The same for lanes that may be named several times, and of which is not known what is free.
CREATE OR REPLACE FUNCTION fill_lanes(
    p_moment timestamptz, p_queue text[], p_lane text[], p_freed integer[]
)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    queues text[]; lanes text[]; freed integer[]; free integer[];
BEGIN
    SELECT array_agg(k.queue), array_agg(k.lane), array_agg(k.freed), array_agg(l.width - l.used)
    INTO queues, lanes, freed, free
    FROM (
        SELECT u.queue, u.lane, sum(u.freed)::integer AS freed
        FROM unnest(p_queue, p_lane, p_freed) AS u (queue, lane, freed)
        GROUP BY u.queue, u.lane
    ) k
    JOIN lane l ON l.queue = ANY (ARRAY[k.queue]) AND l.lane = ANY (ARRAY[k.lane]);
    RETURN promote_waiting(p_moment, queues, lanes, freed, free);
END $$;
