-- The same for a transaction of our own. A key may be held by a transaction of a caller, who decides
-- how long it stays open: raises lock_not_available instead of waiting for that.
CREATE OR REPLACE FUNCTION own_keys_soon(p_id uuid[], p_task text[], p_key text[])
RETURNS uuid[] LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
BEGIN
    RETURN own_keys(p_id, p_task, p_key);
END $$;
