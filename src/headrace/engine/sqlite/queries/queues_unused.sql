-- Queues that were used last before ?3, are not paused, and have nothing ready or waiting: those behind
-- ?1 and ?2, in the order of that time. Those that have scheduled or running jobs may be forgotten as
-- well: a job that is there shows its queue.
SELECT used_at, name FROM queue
WHERE (used_at, name) > (?1, ?2) AND paused = 0 AND used_at < ?3
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 2 AND reserved = 0)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 2 AND reserved = 1)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 1)
ORDER BY used_at, name LIMIT ?4;
