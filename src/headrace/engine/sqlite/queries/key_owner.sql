-- The job that has an idempotency key.
SELECT job_id FROM job_key WHERE key = ?1 AND task = ?2;
