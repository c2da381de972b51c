-- Copy a finished job back to the hot table: attempt 0 and a new number of arrival, but the growing
-- token, the log, the key and the entries stay. rerun_remove.sql follows in the same transaction.
INSERT INTO job (
    seq, id, state, token, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta, log, parent,
    group_name
)
SELECT
    ?1, id, ?2, token, priority, queue, lane, width, hold, ?3, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta, log, parent,
    group_name
FROM history WHERE number = ?4;
