-- A page of jobs that a job has made, the newest first; see migrations/0010_views.sql. Times as in
-- get.sql.
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at,
    least(greatest(run_at, '1970-01-01 00:00:00+00'), '9999-01-01 00:00:00+00') AS run_at,
    started_at, completed_at, worker, error_type, error, result, cancel_reason, meta, log, parent,
    child_group, awaits
FROM list_children($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
