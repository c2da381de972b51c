-- Keep what callers' transactions have said of rates since they were committed; see `say_rates`.
CREATE OR REPLACE FUNCTION keep_said_rates(p_moment timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    queues text[]; lanes text[]; rates text[];
BEGIN
    WITH said AS (
        DELETE FROM said_rate s WHERE s.id = ANY (ARRAY(
            SELECT s.id FROM said_rate s ORDER BY s.id LIMIT 1000 FOR UPDATE SKIP LOCKED
        ))
        RETURNING s.id, s.queue, s.lane, s.rate
    )
    SELECT array_agg(s.queue ORDER BY s.id), array_agg(s.lane ORDER BY s.id),
        array_agg(s.rate::text ORDER BY s.id)
    INTO queues, lanes, rates FROM said s;
    IF queues IS NOT NULL THEN
        PERFORM say_rates(p_moment, queues, lanes, rates, NULL);
    END IF;
END $$;
