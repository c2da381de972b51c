-- What a job waits for that requeue.sql has just made scheduled.
UPDATE job SET awaits = ?1 WHERE seq = ?2;
