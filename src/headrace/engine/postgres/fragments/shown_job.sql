-- The columns of a job that people see; of a `brief` one those are empty that may be large. A time that
-- no calendar has, written by others, must not hide the jobs beside it: it is bent.
id, task, queue, state, CASE WHEN brief THEN '{}' ELSE args END AS args, priority, lane, width, hold,
key, source, attempt, max_attempts, token, timeout,
CASE WHEN fail_on_crash THEN 'fail' ELSE 'retry' END AS on_crash, stage, progress, message,
created_at, least(greatest(run_at, '1970-01-01 00:00:00+00'), '9999-01-01 00:00:00+00') AS run_at,
started_at, completed_at, worker, error_type, error,
CASE WHEN NOT brief THEN result END AS result, cancel_reason IS NOT NULL AS cancel_requested,
CASE WHEN NOT brief THEN meta END AS meta, CASE WHEN brief THEN '' ELSE coalesce(log, '') END AS log,
parent, child_group, awaits, admitted_at,
CASE WHEN state < 3 AND attempt = 0 THEN expiry_of(id) END AS expires_at, parked
