-- When the next scheduled job is due: the first entry of the index job_due.
SELECT min(run_at) FROM job WHERE state = 0;
