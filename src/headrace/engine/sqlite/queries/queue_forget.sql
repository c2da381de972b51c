-- Forget a queue that queues_unused.sql has found, unless it was used or paused since. Always safe:
-- claims look for jobs, not for queues.
DELETE FROM queue WHERE name = ?1 AND paused = 0 AND used_at NOT BETWEEN ?2 AND ?3;
