-- Forget keys that are stored behind `p_after`, and answer the place of the last of them and how many: those
-- that no operator has set, whose times have passed, and of which no unfinished job has a rate or is parked.
-- Whether one is there is looked at again when they are locked: whoever stores or parks such a job has locked
-- its key. One that somebody has locked is about to be used. Step by step in the order of places.
CREATE OR REPLACE FUNCTION forget_rates(
    p_offset double precision, p_after tid, p_limit integer, OUT place tid, OUT amount integer
)
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    now_at double precision := date_part('epoch', clock_timestamp()) + p_offset;
    idle tid[];
BEGIN
    idle := ARRAY(
        SELECT r.ctid FROM rate r
        WHERE r.ctid > p_after AND r.set_count IS NULL AND r.spared_until <= now_at
            AND greatest(r.held_until,
                rate_paid(r.tat, r.held_until, coalesce(r.per / r.count, 0), coalesce(r.burst, 1))
            ) <= now_at
            AND (
                SELECT j.id FROM job j
                WHERE j.lane = r.lane AND j.queue = r.queue AND j.rate IS NOT NULL LIMIT 1
            ) IS NULL
            AND (
                SELECT j.id FROM job j
                WHERE j.lane = r.lane AND j.queue = r.queue AND j.state = 0
                    AND j.parked IS NOT NULL LIMIT 1
            ) IS NULL
        LIMIT p_limit
        FOR UPDATE OF r SKIP LOCKED
    );
    DELETE FROM rate r
    WHERE r.ctid = ANY (idle) AND (
        SELECT j.id FROM job j
        WHERE j.lane = r.lane AND j.queue = r.queue AND j.rate IS NOT NULL LIMIT 1
    ) IS NULL AND (
        SELECT j.id FROM job j
        WHERE j.lane = r.lane AND j.queue = r.queue AND j.state = 0 AND j.parked IS NOT NULL LIMIT 1
    ) IS NULL;
    SELECT max(i.place), count(*) INTO place, amount FROM unnest(idle) AS i (place);
END $$;
