-- The same for a transaction of our own, without the keys of jobs that are stored already (`p_known`).
-- One task stands for all if it is the same. A key may be held by a transaction of a caller, who
-- decides how long it stays open: raises lock_not_available instead of waiting for that.
CREATE OR REPLACE FUNCTION own_keys_soon(
    p_id uuid[], p_task text[], p_key text[], p_known uuid[]
)
RETURNS uuid[] LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
BEGIN
    RETURN own_keys(
        p_id,
        CASE WHEN cardinality(p_task) = 1
            THEN array_fill(p_task[1], ARRAY[cardinality(p_id)]) ELSE p_task END,
        CASE WHEN cardinality(p_known) = 0 THEN p_key ELSE ARRAY(
            SELECT CASE WHEN u.id NOT IN (SELECT unnest(p_known)) THEN u.key END
            FROM unnest(p_id, p_key) WITH ORDINALITY AS u (id, key, ordinal)
            ORDER BY u.ordinal
        ) END
    );
END $$;
