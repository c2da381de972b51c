-- From when on a parked job with this rate (as in job.rate) and attempt may start, by what is kept of its key.
CREATE OR REPLACE FUNCTION parked_opens(
    p_key rate, p_rate double precision[], p_attempt integer,
    OUT opens double precision, OUT cost double precision, OUT paid double precision,
    OUT step double precision
) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    burst integer := coalesce(p_key.set_burst, p_key.burst);
BEGIN
    cost := coalesce(p_rate[4], 1);
    -- The interval; NULL if it does not count.
    IF (p_key.set_count IS NOT NULL OR p_rate IS NOT NULL)
        AND NOT (p_rate IS NOT NULL AND p_rate[5] = 0 AND p_attempt > 0) THEN
        step := coalesce(p_key.set_per / p_key.set_count, p_key.per / p_key.count);
    END IF;
    paid := rate_paid(p_key.tat, p_key.held_until, step, burst);
    opens := rate_opens(paid, p_key.held_until, step, burst, cost);
END $$;
