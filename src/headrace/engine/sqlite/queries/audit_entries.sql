-- Entries whose job is gone.
SELECT DISTINCT job_id FROM entry
WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = entry.job_id)
  AND NOT EXISTS (SELECT 1 FROM history WHERE history.id = entry.job_id);
