-- Move finished jobs to `history`. A job whose cancel was requested is finished however its attempt
-- ended, unless it completed.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
-- Outcome kinds: 0 retry, 1 released, 2 snoozed, -1 the same of one that has not started, 3 reserved with those
-- of its task that come next, -2 reserved alone; 4 and more (NULL: 4) the final state.
CREATE OR REPLACE FUNCTION finish_jobs(
    p_moment timestamptz, p_laned boolean,
    p_id uuid[], p_token integer[], p_kind smallint[], p_result bytea[],
    p_error_type text[], p_error text[], p_entry bytea[],
    OUT settled uuid[], OUT queues text[], OUT lanes text[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM job j
        USING unnest(p_id, p_token, p_kind, p_result, p_error_type, p_error, p_entry)
            AS t (id, token, kind, result, error_type, error, entry)
        WHERE j.id = ANY (ARRAY[t.id]) AND j.token = t.token AND j.state + 0 = 3
            AND (j.lane IS NOT NULL) = p_laned
            AND (coalesce(t.kind, 4) >= 4 OR j.cancel_reason IS NOT NULL)
        RETURNING j.id, j.created_at, j.run_at, j.started_at, j.timeout, j.progress, j.token,
            j.attempt, j.max_attempts, j.width, j.priority, j.hold, j.fail_on_crash, j.queue,
            j.task, j.source, j.lane, j.key, j.worker, j.stage, j.message, j.cancel_reason, j.args,
            j.meta, j.log, j.parent, j.child_group, j.admitted_at, j.rate, t.result,
            t.error_type, t.error, t.entry,
            CASE WHEN t.kind IS NULL THEN 4 WHEN t.kind >= 4 THEN t.kind ELSE 7 END AS state
    ), kept AS (
        -- include: into_history
        SELECT g.id, g.created_at, g.run_at, g.started_at, greatest(p_moment, g.started_at),
            g.timeout, CASE WHEN g.state = 4 THEN 100 ELSE g.progress END, g.token, g.attempt,
            g.max_attempts, g.width, g.state, g.priority, g.hold, g.fail_on_crash, g.queue, g.task,
            g.source, g.lane, g.key, g.worker, g.stage,
            CASE WHEN g.state <> 4 OR g.progress >= 100 THEN g.message END,
            -- No longer than an index can hold beside the other names.
            CASE WHEN g.state <> 7 THEN left(g.error_type, 500) END,
            -- Who asked for the cancel knows the reason better than the attempt that obeyed.
            CASE WHEN g.state = 7 THEN coalesce(g.cancel_reason, g.error) ELSE g.error END,
            g.cancel_reason, g.args, g.meta,
            CASE WHEN g.entry IS NULL THEN g.log ELSE append_to_log(g.log, g.entry) END,
            CASE WHEN g.state = 4 THEN coalesce(g.result, 'null') END,
            g.parent, g.child_group, g.admitted_at, g.rate
        FROM gone g
        RETURNING id, queue, lane
    )
    SELECT array_agg(k.id), array_agg(k.queue) FILTER (WHERE p_laned),
        array_agg(k.lane) FILTER (WHERE p_laned)
    INTO settled, queues, lanes FROM kept k;
END $$;
