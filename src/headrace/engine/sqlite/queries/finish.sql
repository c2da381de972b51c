-- Copy one finished job to history, however it ended; finish_remove.sql follows in the same
-- transaction. The caller has checked state and token there. The log keeps its newest 262144
-- bytes.
INSERT INTO history (
    id, state, token, attempt, worker, started_at, completed_at, cancel_requested, priority, queue,
    lane, width, hold, run_at, created_at, task, key, max_attempts, timeout, on_crash, source,
    progress, stage, message, error_type, error, result, args, meta, log,
    parent, group_name
)
SELECT
    id, ?1, token, attempt,
    coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker),
    started_at, ?2, cancel_reason IS NOT NULL, priority, queue,
    lane, width, hold, run_at, created_at, task, key, max_attempts, timeout, on_crash, source,
    CASE ?1 WHEN 4 THEN 100 ELSE progress END, stage, message, ?3, ?4, ?5, args, meta,
    CASE WHEN ?6 IS NULL THEN log
         ELSE substr(CAST(log || ?6 || x'0a' AS BLOB), -262144) END,
    parent, group_name
FROM job WHERE seq = ?7;
