-- Make a scheduled job ready (2), or let it wait in its lane (1) until it is admitted.
UPDATE job SET state = ?1 WHERE seq = ?2;
