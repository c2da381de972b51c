-- Free a pruned job's key, if it is that job's.
DELETE FROM job_key WHERE key = ?1 AND task = ?2 AND job_id = ?3;
