-- Every job as the program reads it, in the column order of headrace.engine.postgres.rows.job.
CREATE VIEW every_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, NULL::timestamptz AS completed_at, worker, error_type, error,
    NULL::bytea AS result, cancel_reason, meta, log
FROM job
UNION ALL
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, completed_at, worker, error_type, error,
    result, cancel_reason, meta, log
FROM history;

-- Every job for people at a psql prompt.
CREATE VIEW jobs AS
SELECT id, task, queue,
    (ARRAY['scheduled', 'pending', 'pending', 'running', 'completed', 'failed', 'timeout',
           'cancelled'])[state + 1] AS status,
    state = 1 AS waits_for_lane, lane, priority, attempt, max_attempts, stage, progress, message,
    worker, created_at, run_at, started_at, completed_at, error_type, error,
    cancel_reason IS NOT NULL AS cancel_requested, key, source, token,
    convert_from(args, 'UTF8') AS args, convert_from(result, 'UTF8') AS result,
    convert_from(meta, 'UTF8') AS meta
FROM every_job;
