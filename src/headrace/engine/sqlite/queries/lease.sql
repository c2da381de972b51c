-- Workers and their leases.

-- name: worker_replace
-- A new worker of this name is here: earlier ones are dead, whatever their lease says.
UPDATE worker SET died_at = ? WHERE name = ? AND id <> ? AND died_at IS NULL;

-- name: worker_register
-- Introduce a worker and start its lease. Saying it twice is harmless.
INSERT INTO worker (
    id, name, host, pid, version, queues, slots, started_at, heartbeat_at, lease_until, tasks,
    schema_version
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    heartbeat_at = excluded.heartbeat_at, lease_until = excluded.lease_until, died_at = NULL;

-- name: worker_know
-- A living worker knows these tasks from now on.
UPDATE worker SET tasks = ?, offered = NULL WHERE id = ? AND died_at IS NULL;

-- name: worker_renew
-- Extend a lease that has not lapsed. One that has is never revived: its jobs may have others by
-- now.
UPDATE worker SET
    heartbeat_at = ?, lease_until = ?, running = ?, memory_bytes = ?, cpu_percent = ?,
    healthy = ?
WHERE id = ? AND died_at IS NULL AND lease_until > ?;

-- name: worker_remove
-- Forget a worker that left in good order: one that holds no job.
DELETE FROM worker
WHERE id = ? AND NOT EXISTS (SELECT 1 FROM job WHERE job.worker = worker.id AND job.state = 3);

-- name: worker_bury
-- A worker is dead from now on; jobs that it still holds are found by lost.sql.
UPDATE worker SET died_at = ? WHERE id = ? AND died_at IS NULL;

-- name: worker_cancelling
-- Running jobs of one worker that somebody wants cancelled.
SELECT id FROM job WHERE worker = ? AND state = 3 AND cancel_reason IS NOT NULL;

-- name: workers
-- Every worker that is remembered, living ones first, then by name.
SELECT id, name, host, pid, version, queues, slots, running, memory_bytes, cpu_percent, healthy,
       started_at, heartbeat_at, lease_until, died_at, tasks, schema_version
FROM worker
ORDER BY died_at IS NOT NULL OR lease_until <= ?, name, started_at DESC;

-- name: workers_lapsed
-- Declare workers dead whose lease has lapsed.
UPDATE worker SET died_at = ? WHERE died_at IS NULL AND lease_until <= ?;

-- name: workers_ahead
-- A lease that was written when the clock was ahead lasts as long as it was to last, from now.
UPDATE worker SET lease_until = ? + (lease_until - heartbeat_at), heartbeat_at = ?
WHERE died_at IS NULL AND heartbeat_at > ? + 1;

-- name: lost
-- Jobs that dead workers hold. From the few running jobs to their worker, never over all jobs;
-- a worker that is not known at all is as dead as can be.
SELECT job.id, job.token, job.attempt, job.task, job.queue, job.args, job.max_attempts,
       job.timeout, job.on_crash = 'fail', job.priority, job.lane, job.key, job.meta,
       max(job.started_at - job.run_at, 0.0), job.cancel_reason IS NOT NULL, job.parent, job.started_at,
       coalesce(worker.name, job.worker)
FROM job LEFT JOIN worker ON worker.id = job.worker
WHERE job.state = 3 AND (worker.id IS NULL OR worker.died_at IS NOT NULL)
ORDER BY job.started_at, job.seq
LIMIT ?;
