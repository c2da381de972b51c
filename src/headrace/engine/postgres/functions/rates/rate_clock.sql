-- A key, whose lock we have, as it is now: if the clock has gone back since the last start was counted, by more
-- than a second, that counts as of now, so that what it owes does not grow by it. By less nobody waits for
-- long. `p_moment` is when this statement began, and since then others may have started some: what they have
-- counted meanwhile is not ahead.
CREATE OR REPLACE FUNCTION rate_clock(p_key rate, p_moment timestamptz)
RETURNS rate LANGUAGE plpgsql AS $$
DECLARE
    now_at double precision :=
        date_part('epoch', p_moment + (clock_timestamp() - statement_timestamp()));
    ahead double precision := p_key.counted_at - now_at;
BEGIN
    IF ahead > 1 THEN
        p_key.tat := p_key.tat - ahead;
        p_key.line_at := p_key.line_at - ahead;
        p_key.line_tat := p_key.line_tat - ahead;
        p_key.counted_at := now_at;
    END IF;
    RETURN p_key;
END $$;
