-- Cancel, rerun, pause.

-- name: cancel_look
-- The unfinished jobs among those that somebody wants cancelled.
SELECT job.id, job.seq, job.state, job.queue, job.lane, job.pinned
FROM json_each(?) AS asked
CROSS JOIN job ON job.id = asked.value;

-- name: cancel_ask
-- Ask a running job to stop; its worker is told, and settles it. The first who asks gives the reason.
UPDATE job SET cancel_reason = coalesce(cancel_reason, ?) WHERE seq = ?;

-- name: rerun_look
-- The finished jobs among those that somebody wants to run again.
SELECT history.number, history.id, history.queue, history.lane, history.width, history.rate
FROM json_each(?) AS asked
CROSS JOIN history ON history.id = asked.value;

-- name: rerun
-- Copy a finished job back to the hot table: attempt 0 and a new number of arrival, but the growing
-- token, the log, the key and the entries stay. rerun_remove.sql follows in the same transaction.
INSERT INTO job (
    seq, id, state, token, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta, log, parent,
    group_name, rate
)
SELECT
    ?, id, ?, token, priority, queue, lane, width, hold, ?, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta, log, parent,
    group_name, rate
FROM history WHERE number = ?;

-- name: finished
-- Whether a job is finished, and nobody has run it since it had this token.
SELECT 1 FROM history WHERE id = ? AND token = ?;

-- name: forget
-- Remove one entry of a job that finished.sql has found finished.
DELETE FROM entry WHERE job_id = ? AND kind = ? AND name = ?;

-- name: rerun_scheduled_look
-- The scheduled jobs among those that somebody wants to run now, in the columns of due.sql.
SELECT job.seq, job.queue, job.lane, job.width, job.pinned, job.token, job.id
FROM json_each(?) AS asked
CROSS JOIN job ON job.id = asked.value
WHERE +job.state = 0;

-- name: pause
-- Pause or resume a queue, known or not.
INSERT INTO queue (name, paused, used_at) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    resumed = resumed + (paused AND NOT excluded.paused), paused = excluded.paused,
    used_at = excluded.used_at;
