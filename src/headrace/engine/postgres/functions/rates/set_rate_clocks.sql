-- Set keys right, of those that are stored behind `p_after`, that have counted a start which the clock has not
-- reached, and have claims look again at the jobs that are parked: those do not wait for it to catch up.
-- Answers the place of the last of them and how many. Keys that somebody has locked are set right by their
-- users. Step by step in the order of places.
CREATE OR REPLACE FUNCTION set_rate_clocks(
    p_offset double precision, p_after tid, p_limit integer, OUT place tid, OUT amount integer
)
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    moment timestamptz := statement_timestamp() + p_offset * interval '1 second';
    found record;
    old_key rate%ROWTYPE;
BEGIN
    amount := 0;
    FOR found IN
        SELECT r.ctid AS place, r AS key FROM rate r
        WHERE r.ctid > p_after AND r.counted_at > date_part('epoch', moment) + 1
        LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        old_key := found.key;
        PERFORM write_rate(moment, old_key, old_key, true);
        place := found.place;
        amount := amount + 1;
    END LOOP;
END $$;
