-- Forget a worker that left in good order: one that holds no job.
DELETE FROM worker
WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE job.worker = ?1 AND job.state = 3);
