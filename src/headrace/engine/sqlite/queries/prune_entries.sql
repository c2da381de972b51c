-- Delete what was kept with a pruned job.
DELETE FROM entry WHERE job_id = ?1;
