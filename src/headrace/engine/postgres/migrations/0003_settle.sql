-- Recording outcomes. `kind` is the final state (4 to 7), or how the job comes back:
-- 0 retry, 1 released, 2 snoozed.

-- Settle jobs that are running under their token, either those with a lane (whose lanes are locked)
-- or those without. A finished job moves to `history`. A job whose cancel was requested does not
-- come back. Answers the settled ids, how many became ready at once, and for each job with a lane
-- how many places it frees; `rivals` tells whether some came back that may beat others or be beaten.
CREATE FUNCTION settle_jobs(
    p_moment timestamptz, p_laned boolean,
    p_id uuid[], p_token integer[], p_kind smallint[], p_delay double precision[],
    p_result bytea[], p_error_type text[], p_error text[], p_entry bytea[],
    OUT settled uuid[], OUT raised integer,
    OUT queues text[], OUT lanes text[], OUT freed integer[], OUT rivals boolean
) LANGUAGE plpgsql AS $$
BEGIN
    WITH told AS MATERIALIZED (
        SELECT * FROM unnest(p_id, p_token, p_kind, p_delay, p_result, p_error_type, p_error, p_entry)
            AS t (id, token, kind, delay, result, error_type, error, entry)
    ), gone AS (
        DELETE FROM job j USING told t
        WHERE j.id = t.id AND j.token = t.token AND j.state + 0 = 3
            AND (j.lane IS NOT NULL) = p_laned
            AND (t.kind >= 4 OR j.cancel_reason IS NOT NULL)
        RETURNING j.*, CASE WHEN t.kind >= 4 THEN t.kind ELSE 7::smallint END AS final,
            t.result, t.error_type AS told_type, t.error AS told_error, t.entry
    ), kept AS (
        INSERT INTO history (
            id, created_at, run_at, started_at, completed_at, timeout, progress, token, attempt,
            max_attempts, width, state, priority, hold, fail_on_crash, queue, task, source, lane,
            key, worker, stage, message, error_type, error, cancel_reason, args, meta, log, result
        )
        SELECT id, created_at, run_at, started_at, greatest(p_moment, started_at), timeout,
            CASE WHEN final = 4 THEN 100 ELSE progress END, token, attempt,
            max_attempts, width, final, priority, hold, fail_on_crash, queue, task, source, lane,
            key, worker, stage, message,
            CASE WHEN final = 7 THEN NULL ELSE told_type END,
            -- Who asked for the cancel knows the reason better than the attempt that obeyed.
            CASE WHEN final = 7 THEN coalesce(cancel_reason, told_error) ELSE told_error END,
            cancel_reason, args, meta,
            CASE WHEN entry IS NULL THEN log ELSE append_to_log(log, entry) END, result
        FROM gone
    ), back AS (
        UPDATE job j SET
            state = CASE
                WHEN t.kind = 1 THEN 2
                WHEN t.delay > 0 THEN 0
                WHEN j.lane IS NULL OR j.hold THEN 2
                ELSE 1
            END,
            -- Given back unstarted, a job keeps its place unless it is beaten; else `hold` decides.
            pinned = j.pinned OR (t.kind <> 1 AND j.lane IS NOT NULL AND j.hold),
            run_at = CASE
                WHEN t.kind = 1 THEN j.run_at
                ELSE p_moment + t.delay * interval '1 second'
            END,
            attempt = CASE WHEN t.kind = 0 THEN j.attempt ELSE j.attempt - 1 END,
            error_type = coalesce(t.error_type, j.error_type),
            error = coalesce(t.error, j.error),
            log = CASE WHEN t.entry IS NULL THEN j.log ELSE append_to_log(j.log, t.entry) END,
            holder = NULL, worker = NULL, started_at = NULL
        FROM told t
        WHERE j.id = t.id AND j.token = t.token AND j.state + 0 = 3
            AND (j.lane IS NOT NULL) = p_laned
            AND t.kind < 4 AND j.cancel_reason IS NULL
        RETURNING j.id, j.state, j.queue, j.lane,
            CASE WHEN j.pinned OR t.kind = 1 THEN 0 ELSE 1 END AS freed,
            j.state > 0 AND NOT j.pinned AS rivals
    )
    SELECT array_agg(x.id), count(*) FILTER (WHERE x.state = 2),
        array_agg(x.queue) FILTER (WHERE p_laned), array_agg(x.lane) FILTER (WHERE p_laned),
        array_agg(x.freed) FILTER (WHERE p_laned), coalesce(bool_or(x.rivals), false)
    INTO settled, raised, queues, lanes, freed, rivals
    FROM (
        SELECT g.id, g.final AS state, g.queue, g.lane, 1 AS freed, false AS rivals FROM gone g
        UNION ALL
        SELECT b.id, b.state, b.queue, b.lane, b.freed, b.rivals FROM back b
    ) x;
END $$;

-- A job's attempt log with one more line, bounded: the oldest go first.
CREATE FUNCTION append_to_log(p_log bytea, p_entry bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT substring(grown.log FROM greatest(1, octet_length(grown.log) - 262144 + 1))
    FROM (SELECT coalesce(p_log, '') || p_entry || '\x0a'::bytea AS log) grown
$$;
