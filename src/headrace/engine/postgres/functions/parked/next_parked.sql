-- In how many seconds the next parked job of these queues (NULL: all) may start; too early if very many of
-- other queues come before it. NULL: none is parked.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION next_parked(p_moment timestamptz, p_queues text[])
RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    look_at_most CONSTANT integer := 100;
    first timestamptz; last timestamptz; amount integer;
BEGIN
    SELECT min(n.run_at) FILTER (WHERE p_queues IS NULL OR n.queue = ANY (p_queues)),
        max(n.run_at), count(*)
    INTO first, last, amount
    FROM (
        SELECT j.run_at, j.queue FROM job j WHERE j.state = 0 AND j.parked IS NOT NULL
        ORDER BY j.run_at LIMIT CASE WHEN p_queues IS NULL THEN 1 ELSE look_at_most END
    ) n;
    IF first IS NULL AND amount = look_at_most THEN
        first := last;
    END IF;
    RETURN CASE
        WHEN first IS NOT NULL THEN greatest(date_part('epoch', first - p_moment), 0)
    END;
END $$;
