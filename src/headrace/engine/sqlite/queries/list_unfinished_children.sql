-- One page of a job's unfinished children, found in the index of children.
SELECT * FROM unfinished_job
WHERE parent = :parent AND +id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  AND (:group IS NULL OR group_name = :group)
  AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
  AND (:tasks IS NULL OR task IN (SELECT value FROM json_each(:tasks)))
  AND (:lane IS NULL OR lane = :lane)
  AND (:source IS NULL OR source = :source)
  AND (:created_after IS NULL OR created_at >= :created_after)
  AND (:created_before IS NULL OR created_at < :created_before)
ORDER BY id DESC
LIMIT :limit;
