-- What was kept with a job, in the order it was first written.
SELECT kind, name, body, token, at FROM entry
WHERE job_id = $1 AND ($2::text IS NULL OR kind = $2)
ORDER BY ordinal
