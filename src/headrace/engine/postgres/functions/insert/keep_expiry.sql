-- Write down by when jobs have to start: those that were stored (`p_stored`) and have such a time. Where
-- both are given, the time counts before the number of seconds. What an earlier job of that id has left
-- is replaced: older programs prune jobs and leave it.
CREATE OR REPLACE FUNCTION keep_expiry(
    p_moment timestamptz, p_stored uuid[], p_id uuid[],
    p_expires_at double precision[], p_expires_in double precision[]
)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO expiry (job_id, at)
    SELECT u.id,
        coalesce(to_timestamp(u.expires_at), p_moment + u.expires_in * interval '1 second')
    FROM unnest(p_id, p_expires_at, p_expires_in) AS u (id, expires_at, expires_in)
    WHERE (u.expires_at IS NOT NULL OR u.expires_in IS NOT NULL)
        -- Not IN, which would become a loop over both.
        AND NOT u.id NOT IN (SELECT unnest(p_stored))
    ON CONFLICT (job_id) DO UPDATE SET at = EXCLUDED.at, running = false;
END $$;
