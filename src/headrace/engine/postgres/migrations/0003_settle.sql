-- Recording outcomes. `kind` is the final state (4 to 7; NULL means completed), or how the job
-- comes back: 0 retry, 1 released, 2 snoozed, 3 reserved. Columns that no outcome of a call needs are empty; a
-- job that completed without a result has the JSON `null`.
-- The functions take jobs that run under their token, either those with a lane (whose lanes are
-- locked) or those without. Those that settle answer which they did, with the lanes of the former.

-- The lanes of such jobs, each once, with how many of them are in it; and how many are in none.
CREATE FUNCTION lanes_of_running(
    p_id uuid[], p_token integer[],
    OUT queues text[], OUT lanes text[], OUT widths integer[], OUT leaving integer[],
    OUT unlaned integer
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(x.queue) FILTER (WHERE x.lane IS NOT NULL),
        array_agg(x.lane) FILTER (WHERE x.lane IS NOT NULL),
        array_agg(x.width) FILTER (WHERE x.lane IS NOT NULL),
        array_agg(x.jobs) FILTER (WHERE x.lane IS NOT NULL),
        coalesce(sum(x.jobs) FILTER (WHERE x.lane IS NULL), 0)
    INTO queues, lanes, widths, leaving, unlaned
    FROM (
        SELECT j.queue, j.lane, max(j.width) AS width, count(*)::integer AS jobs
        FROM unnest(p_id, p_token) AS t (id, token)
        JOIN job j ON j.id = t.id AND j.token = t.token
        WHERE j.state + 0 = 3
        GROUP BY j.queue, j.lane
    ) x;
END $$;

-- Lock such jobs in the order of ids. Where more than one statement follows, this comes first: two
-- statements, each in that order, are together in none.
CREATE FUNCTION lock_running(p_laned boolean, p_id uuid[], p_token integer[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM unnest(p_id, p_token) AS t (id, token)
    JOIN job j ON j.id = t.id AND j.token = t.token
    WHERE j.state + 0 = 3 AND (j.lane IS NOT NULL) = p_laned
    ORDER BY j.id FOR UPDATE OF j;
END $$;

-- Move finished jobs to `history`. A job whose cancel was requested is finished however its attempt
-- ended, unless it completed.
CREATE FUNCTION finish_jobs(
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
        WHERE j.id = t.id AND j.token = t.token AND j.state + 0 = 3
            AND (j.lane IS NOT NULL) = p_laned
            AND (coalesce(t.kind, 4) >= 4 OR j.cancel_reason IS NOT NULL)
        RETURNING j.id, j.created_at, j.run_at, j.started_at, j.timeout, j.progress, j.token,
            j.attempt, j.max_attempts, j.width, j.priority, j.hold, j.fail_on_crash, j.queue,
            j.task, j.source, j.lane, j.key, j.worker, j.stage, j.message, j.cancel_reason, j.args,
            j.meta, j.log, j.parent, j.child_group, t.result, t.error_type, t.error, t.entry,
            CASE WHEN t.kind IS NULL THEN 4 WHEN t.kind >= 4 THEN t.kind ELSE 7 END AS state
    ), kept AS (
        INSERT INTO history (
            id, created_at, run_at, started_at, completed_at, timeout, progress, token, attempt,
            max_attempts, width, state, priority, hold, fail_on_crash, queue, task, source, lane,
            key, worker, stage, message, error_type, error, cancel_reason, args, meta, log, result,
            parent, child_group
        )
        SELECT g.id, g.created_at, g.run_at, g.started_at, greatest(p_moment, g.started_at),
            g.timeout, CASE WHEN g.state = 4 THEN 100 ELSE g.progress END, g.token, g.attempt,
            g.max_attempts, g.width, g.state, g.priority, g.hold, g.fail_on_crash, g.queue, g.task,
            g.source, g.lane, g.key, g.worker, g.stage, g.message,
            CASE WHEN g.state <> 7 THEN g.error_type END,
            -- Who asked for the cancel knows the reason better than the attempt that obeyed.
            CASE WHEN g.state = 7 THEN coalesce(g.cancel_reason, g.error) ELSE g.error END,
            g.cancel_reason, g.args, g.meta,
            CASE WHEN g.entry IS NULL THEN g.log ELSE append_to_log(g.log, g.entry) END,
            CASE WHEN g.state = 4 THEN coalesce(g.result, 'null') END,
            g.parent, g.child_group
        FROM gone g
        RETURNING id, queue, lane
    )
    SELECT array_agg(k.id), array_agg(k.queue) FILTER (WHERE p_laned),
        array_agg(k.lane) FILTER (WHERE p_laned)
    INTO settled, queues, lanes FROM kept k;
END $$;

-- Put jobs back that are to run again. One that is put off may await something meanwhile. `freed`
-- says which of them gave up their place, `raised` how many may run at once, `rivals` whether some
-- may now beat others of their lane, or be beaten.
CREATE FUNCTION return_jobs(
    p_moment timestamptz, p_laned boolean,
    p_id uuid[], p_token integer[], p_kind smallint[], p_delay double precision[],
    p_error_type text[], p_error text[], p_entry bytea[], p_awaits text[],
    OUT settled uuid[], OUT queues text[], OUT lanes text[], OUT freed integer[],
    OUT raised integer, OUT rivals boolean
) LANGUAGE plpgsql AS $$
BEGIN
    WITH back AS (
        UPDATE job j SET
            state = CASE
                WHEN t.kind IN (1, 3) THEN 2
                WHEN t.delay > 0 THEN 0
                WHEN j.lane IS NULL OR j.hold THEN 2
                ELSE 1
            END,
            reserved = t.kind = 3,
            -- Given back unstarted, a job keeps its place unless it is beaten; else `hold` decides.
            pinned = j.pinned OR (t.kind NOT IN (1, 3) AND j.lane IS NOT NULL AND j.hold),
            run_at = CASE
                WHEN t.kind IN (1, 3) THEN j.run_at
                ELSE p_moment + t.delay * interval '1 second'
            END,
            attempt = CASE WHEN t.kind = 0 THEN j.attempt ELSE j.attempt - 1 END,
            error_type = coalesce(t.error_type, j.error_type),
            error = coalesce(t.error, j.error),
            log = CASE WHEN t.entry IS NULL THEN j.log ELSE append_to_log(j.log, t.entry) END,
            awaits = CASE WHEN t.delay > 0 THEN t.awaits::jsonb END,
            holder = NULL, worker = NULL, started_at = NULL
        FROM unnest(p_id, p_token, p_kind, p_delay, p_error_type, p_error, p_entry, p_awaits)
            AS t (id, token, kind, delay, error_type, error, entry, awaits)
        WHERE j.id = t.id AND j.token = t.token AND j.state + 0 = 3
            AND (j.lane IS NOT NULL) = p_laned
            AND t.kind < 4 AND j.cancel_reason IS NULL
        RETURNING j.id, j.state, j.queue, j.lane, j.pinned,
            CASE WHEN j.pinned OR t.kind IN (1, 3) THEN 0 ELSE 1 END AS freed
    )
    SELECT array_agg(b.id), array_agg(b.queue) FILTER (WHERE p_laned),
        array_agg(b.lane) FILTER (WHERE p_laned), array_agg(b.freed) FILTER (WHERE p_laned),
        count(*) FILTER (WHERE b.state = 2),
        coalesce(bool_or(p_laned AND b.state > 0 AND NOT b.pinned), false)
    INTO settled, queues, lanes, freed, raised, rivals FROM back b;
END $$;

-- A job's attempt log with one more line, bounded: the oldest go first.
CREATE FUNCTION append_to_log(p_log bytea, p_entry bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT substring(grown.log FROM greatest(1, octet_length(grown.log) - 262144 + 1))
    FROM (SELECT coalesce(p_log, '') || p_entry || '\x0a'::bytea AS log) grown
$$;

-- Record what running attempts tell. Each (job, token) comes once; only the one under which the job
-- runs can match. The entries come with the id and token of their note. Answers the notes that
-- were taken, by their number. The jobs are locked before entries are written, which are kept only
-- for those that are seen to run then: no attempt writes an entry after it was lost.
CREATE FUNCTION note_jobs(
    p_offset double precision,
    p_id uuid[], p_token integer[], p_stage text[], p_progress double precision[],
    p_message text[],
    p_entry_job uuid[], p_entry_token integer[], p_kind text[], p_name text[], p_body bytea[]
)
RETURNS integer[]
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    taken integer[];
BEGIN
    IF cardinality(p_id) > 1 THEN
        PERFORM FROM unnest(p_id, p_token) AS t (id, token)
        JOIN job j ON j.id = t.id AND j.token = t.token
        WHERE j.state + 0 = 3
        ORDER BY j.lane IS NOT NULL, j.id FOR NO KEY UPDATE OF j;
    END IF;
    WITH taken AS (
        UPDATE job j SET stage = coalesce(t.stage, j.stage),
            progress = coalesce(t.progress, j.progress), message = coalesce(t.message, j.message)
        FROM unnest(p_id, p_token, p_stage, p_progress, p_message)
            WITH ORDINALITY AS t (id, token, stage, progress, message, ordinal)
        WHERE j.id = t.id AND j.token = t.token AND j.state + 0 = 3
        RETURNING t.ordinal
    )
    SELECT array_agg(t.ordinal::integer) INTO taken FROM taken t;
    IF cardinality(taken) > 0 AND cardinality(p_entry_job) > 0 THEN
        INSERT INTO entry (job_id, token, kind, name, body, at)
        SELECT e.job_id, e.token, e.kind, e.name, e.body, moment
        FROM unnest(p_entry_job, p_entry_token, p_kind, p_name, p_body)
            WITH ORDINALITY AS e (job_id, token, kind, name, body, ordinal)
        JOIN job j ON j.id = e.job_id AND j.token = e.token
        WHERE j.state + 0 = 3
        ORDER BY e.ordinal
        ON CONFLICT (job_id, kind, name) DO UPDATE
            SET body = EXCLUDED.body, token = EXCLUDED.token, at = EXCLUDED.at;
    END IF;
    RETURN coalesce(taken, '{}');
END $$;
