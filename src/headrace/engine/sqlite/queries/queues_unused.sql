-- Queues behind ?3 that have had no new job for long, are not paused, and have nothing ready or waiting. Times
-- outside of ?1 to ?2 are long ago, or of a clock that was wrong. Those that have scheduled or running
-- jobs may be forgotten as well: a job that is there shows its queue.
SELECT name FROM queue
WHERE name > ?3 AND paused = 0 AND used_at NOT BETWEEN ?1 AND ?2
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 2 AND reserved = 0)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 2 AND reserved = 1)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 1)
ORDER BY name LIMIT ?4;
