-- Whether a job is finished.
SELECT 1 FROM history WHERE id = ?1;
