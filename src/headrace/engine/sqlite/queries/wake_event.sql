-- Whether an event of this name was delivered to a job.
SELECT 1 FROM entry WHERE job_id = ?1 AND kind = 'event' AND name = ?2;
