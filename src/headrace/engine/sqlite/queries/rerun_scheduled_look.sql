-- The scheduled jobs among those that somebody wants to run now, in the columns of due.sql.
SELECT job.seq, job.queue, job.lane, job.width, job.pinned, job.token, job.id
FROM json_each(?1) AS asked
CROSS JOIN job ON job.id = asked.value
WHERE +job.state = 0;
