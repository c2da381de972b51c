-- Set keys right that have counted a start which the clock has not reached, and have claims look again at the
-- jobs that are parked: those do not wait for it to catch up. Answers how many. Keys that somebody has locked
-- are set right by their users.
CREATE OR REPLACE FUNCTION set_rate_clocks(p_offset double precision, p_limit integer)
RETURNS integer
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    old_key rate%ROWTYPE;
    amount integer := 0;
BEGIN
    FOR old_key IN
        SELECT * FROM rate r WHERE r.counted_at > date_part('epoch', moment) + 1
        ORDER BY r.queue, r.lane LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM write_rate(moment, old_key, old_key, true);
        amount := amount + 1;
    END LOOP;
    RETURN amount;
END $$;
