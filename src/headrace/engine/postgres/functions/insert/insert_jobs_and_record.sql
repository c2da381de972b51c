-- Change a record and store jobs in one transaction. Returns like `insert_jobs`; a row with the
-- number 0 says that the record has another version, and that nothing was done.
CREATE OR REPLACE FUNCTION insert_jobs_and_record(
    p_record_kind text, p_record_key text, p_record_body bytea, p_record_version bigint,
    p_offset double precision,
    -- include: new_jobs
)
RETURNS TABLE (ordinal integer, existing uuid)
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    -- The record first: of several who want to change it only one goes on to keys and lanes.
    IF change_record(p_offset, p_record_kind, p_record_key, p_record_body, p_record_version) THEN
        RETURN QUERY SELECT * FROM insert_jobs(p_offset, p_id, p_args, p_task, p_queue, p_priority,
            p_delay, p_run_at, p_key, p_lane, p_width, p_hold, p_max_attempts, p_timeout,
            p_fail_on_crash, p_source, p_meta, p_parent, p_group, p_expires_at, p_expires_in, p_rate);
    ELSE
        RETURN QUERY SELECT 0, NULL::uuid;
    END IF;
END $$;
