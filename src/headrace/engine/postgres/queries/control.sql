-- What people do to jobs and queues.

-- name: cancel
-- Cancel jobs; see functions/control/cancel_jobs.sql.
SELECT id::text, cancelled FROM cancel_jobs($1, $2, $3)

-- name: rerun
-- Run finished jobs again and scheduled ones now; see functions/control/rerun_jobs.sql.
SELECT unnest(rerun_jobs($1, $2, $3))::text

-- name: rerun_without
-- Remove entries of a finished job that has this token. False: it is unknown, has not finished, or was
-- run again since. The lock keeps others from running it again: `rerun` follows in the transaction.
WITH finished AS MATERIALIZED (
    SELECT id FROM history WHERE id = $1 AND token = $2 FOR UPDATE
), gone AS (
    DELETE FROM entry e USING finished f, unnest($3::text[], $4::text[]) AS n (kind, name)
    WHERE e.job_id = f.id AND e.kind = n.kind AND e.name = n.name
)
SELECT EXISTS (SELECT FROM finished)

-- name: signal
-- Deliver an event to a job; see functions/due/signal_job.sql.
SELECT signal_job(
    p_offset => $1, p_id => $2, p_name => $3, p_body => $4
)

-- name: pause
-- Stop or resume handing out a queue's jobs; all workers are notified of resuming.
WITH changed AS (
    INSERT INTO queue (name, used_at, paused)
    VALUES ($2, clock_timestamp() + $1::double precision * interval '1 second', $3)
    ON CONFLICT (name) DO UPDATE SET paused = EXCLUDED.paused, used_at = EXCLUDED.used_at
    RETURNING paused
)
SELECT CASE WHEN NOT paused THEN pg_notify(current_schema(), 'work') END FROM changed
