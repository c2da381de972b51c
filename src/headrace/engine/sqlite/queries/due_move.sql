-- Make a scheduled job ready (2), or let it wait in its lane (1) until it is admitted. What it
-- awaited does not matter any more.
UPDATE job SET state = ?1, awaits = NULL WHERE seq = ?2;
