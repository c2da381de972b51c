-- What was kept with a job, in the order of the first write. ?2 NULL means every kind.
SELECT kind, name, body, token, at FROM entry
WHERE job_id = ?1 AND (?2 IS NULL OR kind = ?2)
ORDER BY number;
