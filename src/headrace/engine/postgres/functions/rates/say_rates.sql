-- Keep what jobs and outcomes say of keys: a rate (as in job.rate, of several the last counts), or a hold of
-- so many seconds, which does not shorten another. Where neither is said, a parked job is gone, and the best
-- of the others moves up. Jobs that are run again (`p_back`) bring a rate along where it was forgotten. Until
-- `p_spare` (NULL: now) the keys are not forgotten, whoever has a rate of them.
--
-- The last that a transaction does, once: see `lock_rate`. Where a rate is as it was, others can claim by it
-- meanwhile, but nobody can forget it.
CREATE OR REPLACE FUNCTION say_rates(
    p_moment timestamptz, p_queue text[], p_lane text[], p_rate text[], p_hold double precision[],
    p_back boolean DEFAULT false, p_spare double precision DEFAULT NULL
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    said record;
    old_key rate%ROWTYPE;
    new_key rate%ROWTYPE;
    -- So many that are parked are looked at again at once where jobs change a rate. The others are when
    -- their turn comes: claims see to the best one that is parked.
    look_again_at_most CONSTANT integer := 1000;
BEGIN
    FOR said IN
        SELECT s.queue, s.lane, s.rate[1] AS count, s.rate[2] AS per, s.rate[3]::integer AS burst,
            s.hold, s.again
        FROM (
            SELECT u.queue, u.lane,
                (array_agg(u.rate ORDER BY u.ordinal DESC) FILTER (WHERE u.rate IS NOT NULL))[1]
                    ::double precision[] AS rate,
                max(u.hold) AS hold, bool_or(u.rate IS NULL AND u.hold IS NULL) AS again
            FROM unnest(p_queue, p_lane, p_rate, p_hold)
                WITH ORDINALITY AS u (queue, lane, rate, hold, ordinal)
            GROUP BY u.queue, u.lane
        ) s
        ORDER BY s.queue COLLATE "C", s.lane COLLATE "C"
    LOOP
        IF said.count IS NOT NULL AND said.hold IS NULL AND NOT said.again THEN
            PERFORM FROM rate r
            WHERE r.lane = said.lane AND r.queue = said.queue AND CASE
                WHEN p_back THEN r.count IS NOT NULL
                ELSE r.count = said.count AND r.per = said.per AND r.burst = said.burst
            END AND (p_spare IS NULL OR r.spared_until > p_spare - 3600)
            FOR KEY SHARE;
            CONTINUE WHEN FOUND;
        END IF;
        IF said.count IS NULL AND said.hold IS NULL THEN
            PERFORM FROM rate r WHERE r.lane = said.lane AND r.queue = said.queue;
            CONTINUE WHEN NOT FOUND;
        END IF;
        old_key := lock_rate(said.queue, said.lane);
        new_key := rate_clock(old_key, p_moment);
        IF said.count IS NOT NULL AND NOT (p_back AND old_key.count IS NOT NULL) THEN
            new_key.count := said.count;
            new_key.per := said.per;
            new_key.burst := said.burst;
        END IF;
        -- NULL counts for nothing in these.
        new_key.held_until :=
            greatest(old_key.held_until, date_part('epoch', p_moment) + said.hold);
        new_key.spared_until := greatest(old_key.spared_until, p_spare);
        IF said.again THEN
            new_key.line_at := move_up_parked(p_moment, new_key);
        END IF;
        PERFORM write_rate(p_moment, old_key, new_key, false, look_again_at_most);
    END LOOP;
END $$;
