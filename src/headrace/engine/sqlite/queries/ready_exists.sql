-- Whether any job may run now. One step into the index job_ready.
SELECT 1 FROM job WHERE state = 2 LIMIT 1;
