-- The highest of these ids, below one if it is given.
CREATE OR REPLACE FUNCTION newest_ids(p_id uuid[], p_before uuid, p_limit bigint)
RETURNS uuid[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(
        SELECT u.id FROM unnest(p_id) AS u (id)
        WHERE p_before IS NULL OR u.id < p_before ORDER BY u.id DESC LIMIT p_limit
    )
$$;
