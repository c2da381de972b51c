-- Lock a key and answer whose it is; if nobody has it, it is this job's from now on. Who comes next waits,
-- and sees what was done about it. Raises lock_not_available as `own_keys_soon` does.
CREATE OR REPLACE FUNCTION lock_key(p_id uuid, p_task text, p_key text)
RETURNS uuid LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
DECLARE
    owner uuid;
BEGIN
    LOOP
        INSERT INTO job_key (key, task, job_id) VALUES (p_key, p_task, p_id) ON CONFLICT DO NOTHING;
        SELECT k.job_id INTO owner FROM job_key k
        WHERE k.key = p_key AND k.task = p_task FOR UPDATE;
        -- A key that was pruned between the two statements is free now: once more.
        EXIT WHEN FOUND;
    END LOOP;
    RETURN owner;
END $$;
