-- Keys that lead to no job, and jobs with a key that does not lead to them.
SELECT key, task, job_id FROM job_key
WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = job_key.job_id)
  AND NOT EXISTS (SELECT 1 FROM history WHERE history.id = job_key.job_id)
UNION ALL
SELECT one.key, one.task, one.id
FROM (
    SELECT key, task, id FROM job WHERE key IS NOT NULL
    UNION ALL
    SELECT key, task, id FROM history WHERE key IS NOT NULL
) AS one
LEFT JOIN job_key ON job_key.key = one.key AND job_key.task = one.task
WHERE job_key.job_id IS NOT one.id;
