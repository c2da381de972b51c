-- What a job waits for that requeue.sql has just made scheduled.
INSERT INTO suspended (seq, id, awaits) VALUES (?1, ?2, ?3);
