-- The unfinished jobs among those that somebody wants cancelled.
SELECT job.id, job.seq, job.state, job.queue, job.lane, job.pinned
FROM json_each(?1) AS asked
CROSS JOIN job ON job.id = asked.value;
