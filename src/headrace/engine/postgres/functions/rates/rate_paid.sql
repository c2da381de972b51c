-- When all that has started of a key is paid for. No burst follows a hold.
CREATE OR REPLACE FUNCTION rate_paid(
    p_tat double precision, p_held_until double precision,
    p_interval double precision, p_burst double precision
)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_held_until > 0 THEN greatest(p_tat, p_held_until + (p_burst - 1) * p_interval)
        ELSE p_tat
    END
$$;
