-- Arguments and meta of jobs, byte by byte as they were handed in.
SELECT job.seq, job.args, job.meta
FROM json_each(?1) AS chosen
CROSS JOIN job ON job.seq = chosen.value;
