-- What an operator says of the rate of a key, for all its jobs; with NULL: nothing any more.
CREATE OR REPLACE FUNCTION set_rate(
    p_offset double precision, p_queue text, p_lane text,
    p_count double precision, p_per double precision, p_burst integer
)
RETURNS void
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    old_key rate%ROWTYPE := lock_rate(p_queue, p_lane);
    new_key rate%ROWTYPE := old_key;
BEGIN
    new_key.set_count := p_count;
    new_key.set_per := p_per;
    new_key.set_burst := p_burst;
    PERFORM write_rate(
        statement_timestamp() + p_offset * interval '1 second', old_key, new_key, false);
END $$;
