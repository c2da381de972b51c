-- Workers and their leases.

-- name: worker_replace
-- A new worker of this name is here: earlier ones are dead, whatever their lease says.
UPDATE worker SET died_at = ?3 WHERE name = ?1 AND id <> ?2 AND died_at IS NULL;

-- name: worker_register
-- Introduce a worker and start its lease. Saying it twice is harmless.
INSERT INTO worker (
    id, name, host, pid, version, queues, slots, started_at, heartbeat_at, lease_until, tasks,
    schema_version
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11)
ON CONFLICT (id) DO UPDATE SET
    heartbeat_at = excluded.heartbeat_at, lease_until = excluded.lease_until, died_at = NULL;

-- name: worker_know
-- A living worker knows these tasks from now on.
UPDATE worker SET tasks = ?2, offered = NULL WHERE id = ?1 AND died_at IS NULL;

-- name: worker_renew
-- Extend a lease that has not lapsed. One that has is never revived: its jobs may have others by
-- now.
UPDATE worker SET
    heartbeat_at = ?2, lease_until = ?3, running = ?4, memory_bytes = ?5, cpu_percent = ?6,
    healthy = ?7
WHERE id = ?1 AND died_at IS NULL AND lease_until > ?2;

-- name: worker_remove
-- Forget a worker that left in good order: one that holds no job.
DELETE FROM worker
WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE job.worker = ?1 AND job.state = 3);

-- name: worker_bury
-- A worker is dead from now on; jobs that it still holds are found by lost.sql.
UPDATE worker SET died_at = ?2 WHERE id = ?1 AND died_at IS NULL;

-- name: worker_cancelling
-- Running jobs of one worker that somebody wants cancelled.
SELECT id FROM job WHERE worker = ?1 AND state = 3 AND cancel_reason IS NOT NULL;

-- name: workers
-- Every worker that is remembered, living ones first, then by name.
SELECT id, name, host, pid, version, queues, slots, running, memory_bytes, cpu_percent, healthy,
       started_at, heartbeat_at, lease_until, died_at, tasks, schema_version
FROM worker
ORDER BY died_at IS NOT NULL OR lease_until <= ?1, name, started_at DESC;

-- name: workers_lapsed
-- Declare workers dead whose lease has lapsed.
UPDATE worker SET died_at = ?1 WHERE died_at IS NULL AND lease_until <= ?1;

-- name: workers_ahead
-- A lease that was written when the clock was ahead lasts as long as it was to last, from now.
UPDATE worker SET lease_until = ?1 + (lease_until - heartbeat_at), heartbeat_at = ?1
WHERE died_at IS NULL AND heartbeat_at > ?1 + 1;

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
LIMIT ?1;
