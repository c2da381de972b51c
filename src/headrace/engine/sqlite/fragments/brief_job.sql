-- The columns of a job as `rows.job` reads them, without those that may be large: what is not named
-- is not read, however many pages it has.
id, task, queue, state, CAST('{}' AS BLOB) AS args, priority, lane, width, hold, key, source, attempt,
max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at, started_at,
completed_at, worker, error_type, error, NULL AS result, cancel_requested, NULL AS meta, x'' AS log,
parent, group_name, awaits, admitted_at, expires_at, parked
