-- Whether any job may run now. One step into each of the indexes job_ready and job_reserved.
SELECT EXISTS (SELECT 1 FROM job WHERE state = 2 AND reserved = 0)
    OR EXISTS (SELECT 1 FROM job WHERE state = 2 AND reserved = 1);
