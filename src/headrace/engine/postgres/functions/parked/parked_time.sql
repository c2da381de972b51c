-- The time of a parked job, of seconds since the epoch: in microseconds, not before it.
CREATE OR REPLACE FUNCTION parked_time(p_at double precision)
RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT to_timestamp(ceil(p_at * 1000000) / 1000000)
$$;
