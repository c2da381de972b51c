-- What every list of jobs may be asked for; NULL leaves a condition out.
AND (:group IS NULL OR group_name = :group)
AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
AND (:tasks IS NULL OR task IN (SELECT value FROM json_each(:tasks)))
AND (:lane IS NULL OR lane = :lane)
AND (:source IS NULL OR source = :source)
AND (:created_after IS NULL OR created_at >= :created_after)
AND (:created_before IS NULL OR created_at < :created_before)
