-- Remove one entry of a job that finished.sql has found finished.
DELETE FROM entry WHERE job_id = ?1 AND kind = ?2 AND name = ?3;
