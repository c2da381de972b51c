-- A worker may claim reserved jobs of these queues and tasks.
UPDATE worker SET offered = ?2 WHERE id = ?1;
