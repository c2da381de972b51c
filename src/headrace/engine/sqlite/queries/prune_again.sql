-- Those of the jobs that prune_old.sql has found which may still go: in the meantime one may have run
-- again, and so may its parent. ?1 is a JSON array of [number, id].
SELECT history.number, history.id, history.key, history.task
FROM json_each(?1) AS asked
CROSS JOIN history ON history.number = json_extract(asked.value, '$[0]')
WHERE +history.id = json_extract(asked.value, '$[1]')
  AND (history.parent IS NULL OR NOT EXISTS (SELECT 1 FROM job WHERE job.id = history.parent));
