-- Ids of suspended jobs after one of them, from the index of those that are.
SELECT id FROM job INDEXED BY job_suspended WHERE awaits IS NOT NULL AND id > ?1
ORDER BY id
LIMIT ?2;
