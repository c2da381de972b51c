-- Start nothing of a key for so many seconds, whatever was said before; 0: a hold is over.
CREATE OR REPLACE FUNCTION hold_lane(
    p_offset double precision, p_queue text, p_lane text, p_seconds double precision
)
RETURNS void
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    old_key rate%ROWTYPE := lock_rate(p_queue, p_lane);
    new_key rate%ROWTYPE := old_key;
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
BEGIN
    new_key.held_until := CASE
        WHEN p_seconds > 0 THEN date_part('epoch', moment) + p_seconds ELSE 0
    END;
    PERFORM write_rate(
        statement_timestamp() + p_offset * interval '1 second', old_key, new_key, true);
END $$;
