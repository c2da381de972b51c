-- A parked job of a key, whose lock we have, is gone: the best of the others has its time. The claims that
-- start it see to the next. Answers when the last that is parked may start: 0 if nobody is.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION move_up_parked(p_moment timestamptz, p_key rate)
RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    best record;
    opens timestamptz;
BEGIN
    SELECT j.ctid AS place, j.run_at, j.rate, j.attempt INTO best FROM job j
    WHERE j.lane = p_key.lane AND j.queue = p_key.queue AND j.state = 0 AND j.parked IS NOT NULL
    ORDER BY j.priority DESC, j.seq LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN
        opens := greatest(p_moment, parked_time(
            (SELECT o.opens FROM parked_opens(p_key, best.rate, best.attempt) o)));
        IF opens < best.run_at THEN
            UPDATE job SET run_at = opens WHERE ctid = best.place;
            PERFORM pg_notify(current_schema(), 'work');
        END IF;
    ELSIF NOT is_any_parked(p_key.queue, p_key.lane) THEN
        RETURN 0;
    END IF;
    RETURN p_key.line_at;
END $$;
