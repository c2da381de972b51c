-- Forget workers that died long ago, unless a job of theirs has not been taken over yet.
DELETE FROM worker
WHERE died_at < ?1
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.worker = worker.id AND job.state = 3);
