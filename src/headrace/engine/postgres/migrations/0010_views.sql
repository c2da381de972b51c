-- Every job as the program reads it, in the column order of headrace.engine.postgres.rows.job.
CREATE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, NULL::timestamptz AS completed_at, worker, error_type, error,
    NULL::bytea AS result, cancel_reason, meta, log, parent, child_group, awaits
FROM job;

CREATE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, completed_at, worker, error_type, error,
    result, cancel_reason, meta, log, parent, child_group, NULL::jsonb AS awaits
FROM history;

CREATE VIEW every_job AS
SELECT * FROM unfinished_job UNION ALL SELECT * FROM finished_job;

-- Every job for people at a psql prompt.
CREATE VIEW jobs AS
SELECT id, task, queue,
    (ARRAY['scheduled', 'pending', 'pending', 'running', 'completed', 'failed', 'timeout',
           'cancelled'])[state + 1] AS status,
    state = 1 AS waits_for_lane, lane, priority, attempt, max_attempts, stage, progress, message,
    worker, created_at, run_at, started_at, completed_at, error_type, error,
    cancel_reason IS NOT NULL AS cancel_requested, key, source, token,
    convert_from(args, 'UTF8') AS args, convert_from(result, 'UTF8') AS result,
    convert_from(meta, 'UTF8') AS meta, parent, child_group, awaits
FROM every_job;

-- A page of jobs, the newest first; NULL leaves a condition out. There are three places to look:
-- unfinished jobs, finished ones that did not complete, and completed ones. Those in which no
-- asked state is found are left alone; the others are walked along their index on id, each no
-- further than the page needs. Planned anew each time: a plan that serves all filters does not see
-- what is left out.
CREATE FUNCTION list_jobs(
    p_unfinished boolean, p_unsuccessful boolean, p_completed boolean,
    p_before uuid, p_states smallint[], p_queues text[], p_tasks text[], p_lane text,
    p_source text, p_created_after timestamptz, p_created_before timestamptz, p_key text,
    p_limit integer
)
RETURNS SETOF every_job
LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    -- Few jobs share a key, and an index knows them.
    ids uuid[] := CASE WHEN p_key IS NOT NULL
        THEN ARRAY(SELECT k.job_id FROM job_key k WHERE k.key = p_key) END;
BEGIN
    RETURN QUERY
    SELECT * FROM (
        (SELECT * FROM unfinished_job e
        WHERE p_unfinished
            AND (ids IS NULL OR e.id = ANY (ids))
            AND (p_before IS NULL OR e.id < p_before)
            AND (p_states IS NULL OR e.state = ANY (p_states))
            AND (p_queues IS NULL OR e.queue = ANY (p_queues))
            AND (p_tasks IS NULL OR e.task = ANY (p_tasks))
            AND (p_lane IS NULL OR e.lane = p_lane)
            AND (p_source IS NULL OR e.source = p_source)
            AND (p_created_after IS NULL OR e.created_at >= p_created_after)
            AND (p_created_before IS NULL OR e.created_at < p_created_before)
        ORDER BY e.id DESC LIMIT p_limit)
        UNION ALL
        (SELECT * FROM finished_job e
        WHERE p_unsuccessful AND e.state <> 4
            AND (ids IS NULL OR e.id = ANY (ids))
            AND (p_before IS NULL OR e.id < p_before)
            AND (p_states IS NULL OR e.state = ANY (p_states))
            AND (p_queues IS NULL OR e.queue = ANY (p_queues))
            AND (p_tasks IS NULL OR e.task = ANY (p_tasks))
            AND (p_lane IS NULL OR e.lane = p_lane)
            AND (p_source IS NULL OR e.source = p_source)
            AND (p_created_after IS NULL OR e.created_at >= p_created_after)
            AND (p_created_before IS NULL OR e.created_at < p_created_before)
        ORDER BY e.id DESC LIMIT p_limit)
        UNION ALL
        (SELECT * FROM finished_job e
        WHERE p_completed AND e.state = 4
            AND (ids IS NULL OR e.id = ANY (ids))
            AND (p_before IS NULL OR e.id < p_before)
            AND (p_states IS NULL OR e.state = ANY (p_states))
            AND (p_queues IS NULL OR e.queue = ANY (p_queues))
            AND (p_tasks IS NULL OR e.task = ANY (p_tasks))
            AND (p_lane IS NULL OR e.lane = p_lane)
            AND (p_source IS NULL OR e.source = p_source)
            AND (p_created_after IS NULL OR e.created_at >= p_created_after)
            AND (p_created_before IS NULL OR e.created_at < p_created_before)
        ORDER BY e.id DESC LIMIT p_limit)
    ) page
    ORDER BY id DESC LIMIT p_limit;
END $$;

-- A page of children, the newest first; NULL leaves a condition out. All of a parent's are read
-- along the indexes on parent before they are sorted (OFFSET 0 keeps the planner from anything
-- else): walking along ids until enough of them were met would be a walk over all jobs.
CREATE FUNCTION list_children(
    p_parent uuid, p_group text, p_unfinished boolean, p_finished boolean,
    p_before uuid, p_states smallint[], p_queues text[], p_tasks text[], p_lane text,
    p_source text, p_created_after timestamptz, p_created_before timestamptz, p_key text,
    p_limit integer
)
RETURNS SETOF every_job
LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT * FROM (
        (SELECT * FROM unfinished_job e
        WHERE p_unfinished AND e.parent IS NOT NULL AND (p_parent IS NULL OR e.parent = p_parent)
            AND (p_group IS NULL OR e.child_group = p_group)
            AND (p_before IS NULL OR e.id < p_before) OFFSET 0)
        UNION ALL
        (SELECT * FROM finished_job e
        WHERE p_finished AND e.parent IS NOT NULL AND (p_parent IS NULL OR e.parent = p_parent)
            AND (p_group IS NULL OR e.child_group = p_group)
            AND (p_before IS NULL OR e.id < p_before) OFFSET 0)
    ) e
    WHERE (p_states IS NULL OR e.state = ANY (p_states))
        AND (p_queues IS NULL OR e.queue = ANY (p_queues))
        AND (p_tasks IS NULL OR e.task = ANY (p_tasks))
        AND (p_lane IS NULL OR e.lane = p_lane)
        AND (p_source IS NULL OR e.source = p_source)
        AND (p_created_after IS NULL OR e.created_at >= p_created_after)
        AND (p_created_before IS NULL OR e.created_at < p_created_before)
        AND (p_key IS NULL OR e.key = p_key)
    ORDER BY e.id DESC LIMIT p_limit;
END $$;
