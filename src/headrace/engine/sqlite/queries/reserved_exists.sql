-- Whether there are reserved jobs of one queue and task.
SELECT EXISTS (SELECT 1 FROM job WHERE queue = ?1 AND task = ?2 AND state = 2 AND reserved = 1);
