-- Running jobs that somebody wants cancelled, from an index that is nearly always empty.
SELECT id, token FROM job WHERE state = 3 AND cancel_reason IS NOT NULL;
