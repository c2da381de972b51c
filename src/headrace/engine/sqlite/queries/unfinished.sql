-- Whether a job has not finished.
SELECT 1 FROM job WHERE id = ?1;
