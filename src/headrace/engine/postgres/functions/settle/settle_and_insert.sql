-- Record outcomes and store the jobs that follow from them: all of it, or nothing. Returns the ids
-- whose outcome is refused; if there are any, nothing was done, and the caller leaves them out.
--
-- Everything is locked before anything is changed, in the order of all verbs: keys, jobs without a
-- lane, then the lanes of the jobs that settle together with those of the jobs that follow
-- (`p_due_queue`, `p_due_lane`, `p_due_width`: those that are not put off). A key in doubt is waited for
-- before anybody else can be waiting for this.
--
-- The columns are those of `exchange` and of `insert_jobs`.
CREATE OR REPLACE FUNCTION settle_and_insert(
    p_offset double precision,
    p_settled uuid[], p_token integer[], p_kind smallint[], p_put_off double precision[],
    p_result bytea[], p_error_type text[], p_error text[], p_entry bytea[], p_awaits text[],
    p_due_queue text[], p_due_lane text[], p_due_width integer[],
    p_hold_lane double precision[],
    -- include: new_jobs
)
RETURNS uuid[]
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    running record;
    answer record;
    held record;
    stale uuid[];
BEGIN
    IF p_key IS NOT NULL THEN
        PERFORM own_keys_soon(p_id, p_task, p_key, known_ids(p_id, true));
    END IF;
    IF cardinality(p_token) < cardinality(p_settled) THEN
        p_token := array_fill(p_token[1], ARRAY[cardinality(p_settled)]);
    END IF;
    PERFORM lock_running(false, p_settled, p_token);
    SELECT * INTO running FROM lanes_of_running(p_settled, p_token);
    IF running.lanes IS NOT NULL OR cardinality(p_due_lane) > 0 THEN
        PERFORM lock_lanes(running.queues || p_due_queue, running.lanes || p_due_lane,
            running.widths || p_due_width, false);
    END IF;
    SELECT e.refused, e.notify INTO answer FROM exchange(
        p_offset, p_settled, p_token, p_kind, p_put_off, p_result, p_error_type, p_error, p_entry,
        p_awaits, running.lanes IS NOT NULL, NULL, NULL, 0, 0
    ) e;
    stale := answer.refused;
    IF stale IS NOT NULL THEN
        RAISE EXCEPTION 'outcomes are refused' USING ERRCODE = 'HR001';
    END IF;
    IF answer.notify THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    -- Keys of rates come last.
    SELECT * INTO held FROM held_lanes(p_settled, p_hold_lane, p_settled);
    PERFORM FROM insert_jobs(p_offset, p_id, p_args, p_task, p_queue, p_priority, p_delay, p_run_at,
        p_key, p_lane, p_width, p_hold, p_max_attempts, p_timeout, p_fail_on_crash, p_source,
        p_meta, p_parent, p_group, p_expires_at, p_expires_in, p_rate,
        held.queues, held.lanes, held.seconds);
    RETURN NULL;
EXCEPTION WHEN SQLSTATE 'HR001' THEN
    RETURN stale;
END $$;
