-- Running jobs of one worker that somebody wants cancelled.
SELECT id FROM job WHERE worker = ?1 AND state = 3 AND cancel_reason IS NOT NULL;
