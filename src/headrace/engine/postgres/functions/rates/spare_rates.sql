-- Keep what jobs of a caller's transaction say of the rates of their lanes, in a transaction of our own: in
-- theirs, every claim would wait until it ends. Until then nobody sees those jobs, so the keys are not
-- forgotten for a day.
CREATE OR REPLACE FUNCTION spare_rates(
    p_offset double precision, p_queue text[], p_lane text[], p_rate text[]
)
RETURNS void
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
BEGIN
    PERFORM say_rates(moment, p_queue, p_lane, p_rate, NULL,
        p_spare => date_part('epoch', moment) + 86400);
END $$;
