-- Make keys of one task theirs. Raises unique_violation if one is taken, and lock_not_available if
-- that is not known soon, as `own_keys_soon` does.
CREATE OR REPLACE FUNCTION take_keys(p_id uuid[], p_task text, p_key text[])
RETURNS void LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
BEGIN
    -- In one order: who waits for another's key must not hold one that the other wants.
    INSERT INTO job_key (key, task, job_id)
    SELECT u.key, p_task, u.id
    FROM unnest(p_key, p_id) AS u (key, id) ORDER BY u.key COLLATE "C";
END $$;
