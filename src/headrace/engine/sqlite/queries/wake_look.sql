-- The suspended jobs among those that somebody wants woken, in the columns of due.sql.
SELECT job.seq, job.queue, job.lane, job.width, job.pinned, job.token, job.id, suspended.awaits
FROM json_each(?1) AS asked
CROSS JOIN suspended ON suspended.id = asked.value
CROSS JOIN job ON job.seq = suspended.seq
ORDER BY asked.key;
