-- Keep what was changed of a key, whose lock we have. What has started counts by the new rate. If that
-- differs, claims look again at `p_most` (NULL: all) of the jobs that are parked, and with `p_again` at all.
-- `p_moment` is when the statement began.
CREATE OR REPLACE FUNCTION write_rate(
    p_moment timestamptz, p_old rate, p_new rate, p_again boolean, p_most integer DEFAULT NULL
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    -- Not earlier: it may have waited for the key.
    now_at double precision :=
        date_part('epoch', p_moment + (clock_timestamp() - statement_timestamp()));
    old_interval double precision :=
        coalesce(p_old.set_per / p_old.set_count, p_old.per / p_old.count);
    new_interval double precision :=
        coalesce(p_new.set_per / p_new.set_count, p_new.per / p_new.count);
    most integer := CASE WHEN NOT p_again THEN p_most END;
    factor double precision;
BEGIN
    p_new := rate_clock(p_new, p_moment);
    IF (old_interval, coalesce(p_old.set_burst, p_old.burst))
        IS DISTINCT FROM (new_interval, coalesce(p_new.set_burst, p_new.burst)) THEN
        p_again := true;
        IF old_interval > 0 AND new_interval > 0 THEN
            factor := new_interval / old_interval;
            p_new.tat := now_at + greatest(p_new.tat - now_at, 0) * factor;
            p_new.line_at := now_at + greatest(p_new.line_at - now_at, 0) * factor;
            p_new.line_tat := now_at + greatest(p_new.line_tat - now_at, 0) * factor;
        END IF;
    END IF;
    IF p_again THEN
        IF parked_again(p_moment, p_new.queue, p_new.lane, most) IS DISTINCT FROM most THEN
            p_new.line_at := 0;
        END IF;
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    UPDATE rate SET tat = p_new.tat, counted_at = p_new.counted_at, held_until = p_new.held_until,
        line_at = p_new.line_at, line_tat = p_new.line_tat,
        count = p_new.count, per = p_new.per, burst = p_new.burst,
        set_count = p_new.set_count, set_per = p_new.set_per, set_burst = p_new.set_burst,
        spared_until = p_new.spared_until
    WHERE lane = p_new.lane AND queue = p_new.queue;
END $$;
