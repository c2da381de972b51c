-- Jobs that dead workers hold. From the few running jobs to their worker, never over all jobs;
-- a worker that is not known at all is as dead as can be.
SELECT job.id, job.token, job.attempt, job.task, job.queue, job.args, job.max_attempts,
       job.timeout, job.on_crash, job.priority, job.lane, job.key, job.meta,
       max(job.started_at - job.run_at, 0.0), job.cancel_reason, job.parent, job.started_at,
       coalesce(worker.name, job.worker)
FROM job LEFT JOIN worker ON worker.id = job.worker
WHERE job.state = 3 AND (worker.id IS NULL OR worker.died_at IS NOT NULL)
ORDER BY job.started_at, job.seq
LIMIT ?1;
