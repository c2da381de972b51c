-- From when on a job of this cost may start, if all before it is paid for at `p_paid`, and nothing starts
-- before `p_held_until`; with the interval NULL: one that does not count.
CREATE OR REPLACE FUNCTION rate_opens(
    p_paid double precision, p_held_until double precision,
    p_interval double precision, p_burst double precision, p_cost double precision
)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    -- NULL counts for nothing here.
    SELECT greatest(p_paid - greatest(p_burst - p_cost, 0) * p_interval, p_held_until)
$$;
