-- The suspended jobs among those that somebody wants woken, in the columns of due.sql.
SELECT job.seq, job.queue, job.lane, job.width, job.pinned, job.token, job.id, job.awaits
FROM json_each(?1) AS asked
CROSS JOIN job INDEXED BY job_suspended ON job.id = asked.value
WHERE job.awaits IS NOT NULL
ORDER BY asked.key;
