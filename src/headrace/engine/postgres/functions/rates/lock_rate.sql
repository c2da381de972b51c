-- Lock what is kept of one key, made where it does not exist. Whoever does that waits for nothing but
-- further keys, in their order, until its transaction ends: claims wait for keys while they have locked jobs.
CREATE OR REPLACE FUNCTION lock_rate(p_queue text, p_lane text)
RETURNS rate LANGUAGE plpgsql AS $$
DECLARE
    found_key rate%ROWTYPE;
BEGIN
    LOOP
        SELECT * INTO found_key FROM rate r
        WHERE r.lane = p_lane AND r.queue = p_queue FOR NO KEY UPDATE;
        -- One that was forgotten between the two statements is made anew: once more.
        EXIT WHEN FOUND;
        INSERT INTO rate (queue, lane) VALUES (p_queue, p_lane) ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found_key;
END $$;
