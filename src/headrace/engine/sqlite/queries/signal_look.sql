-- Whom an event is for: its token if it is unfinished, and whether it is finished.
SELECT (SELECT token FROM job WHERE id = ?1), EXISTS (SELECT 1 FROM history WHERE id = ?1);
