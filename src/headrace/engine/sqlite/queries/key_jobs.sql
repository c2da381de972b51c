-- The jobs that have this key, in any task.
SELECT job_id FROM job_key WHERE key = ?1;
