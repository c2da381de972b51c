-- Keep what was changed of a key, whose lock we have. What has started counts by the new rate. If that
-- differs, or with `p_again`, claims look again at the jobs that are parked.
CREATE OR REPLACE FUNCTION write_rate(
    p_moment timestamptz, p_old rate, p_new rate, p_again boolean
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now_at double precision := date_part('epoch', p_moment);
    old_interval double precision :=
        coalesce(p_old.set_per / p_old.set_count, p_old.per / p_old.count);
    new_interval double precision :=
        coalesce(p_new.set_per / p_new.set_count, p_new.per / p_new.count);
BEGIN
    IF (old_interval, coalesce(p_old.set_burst, p_old.burst))
        IS DISTINCT FROM (new_interval, coalesce(p_new.set_burst, p_new.burst)) THEN
        p_again := true;
        IF old_interval > 0 AND new_interval > 0 THEN
            p_new.tat := now_at
                + greatest(p_old.tat - now_at, 0) / old_interval * new_interval;
        END IF;
    END IF;
    IF p_again THEN
        p_new.line_at := 0;
    END IF;
    UPDATE rate SET tat = p_new.tat, held_until = p_new.held_until, line_at = p_new.line_at,
        count = p_new.count, per = p_new.per, burst = p_new.burst,
        set_count = p_new.set_count, set_per = p_new.set_per, set_burst = p_new.set_burst,
        spared_until = p_new.spared_until
    WHERE lane = p_new.lane AND queue = p_new.queue;
    IF p_again THEN
        PERFORM parked_again(p_moment, p_new.queue, p_new.lane);
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
END $$;
