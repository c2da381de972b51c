-- What else finished jobs may be asked for.
AND (:worker IS NULL OR worker = :worker)
AND (:finished_after IS NULL OR completed_at >= :finished_after)
AND (:finished_before IS NULL OR completed_at < :finished_before)
