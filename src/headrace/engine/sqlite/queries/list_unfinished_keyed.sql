-- One page of unfinished jobs that have a key: the few that job_key names.
SELECT * FROM unfinished_job
WHERE id IN (SELECT job_id FROM job_key WHERE job_key.key = :key)
  AND +id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  AND (:parent IS NULL OR +parent = :parent)
  AND (:group IS NULL OR group_name = :group)
  AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
  AND (:tasks IS NULL OR task IN (SELECT value FROM json_each(:tasks)))
  AND (:lane IS NULL OR lane = :lane)
  AND (:source IS NULL OR source = :source)
  AND (:created_after IS NULL OR created_at >= :created_after)
  AND (:created_before IS NULL OR created_at < :created_before)
ORDER BY id DESC
LIMIT :limit;
