-- A key as it is at this moment: if the clock has gone back since the last start was counted, by more than a
-- second, that counts as of now, so that what it owes does not grow by it. By less nobody waits for long, and
-- claims that run at the same time differ by some milliseconds.
CREATE OR REPLACE FUNCTION rate_clock(p_key rate, p_now double precision)
RETURNS rate LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    ahead double precision := p_key.counted_at - p_now;
BEGIN
    IF ahead > 1 THEN
        p_key.tat := p_key.tat - ahead;
        p_key.line_at := p_key.line_at - ahead;
        p_key.line_tat := p_key.line_tat - ahead;
        p_key.counted_at := p_now;
    END IF;
    RETURN p_key;
END $$;
