-- A caller's transaction is about to store jobs that say these rates: keep keys for them, in a transaction of
-- our own. A key that has a rate keeps that one; what they say is known when the caller commits (table
-- said_rate). Nobody sees those jobs until then, so the keys are not forgotten for a day.
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
        p_back => true, p_spare => date_part('epoch', moment) + 86400);
END $$;
