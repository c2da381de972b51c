-- Finished jobs from number ?1 on, the oldest first: numbers grow with the time of finishing, so no
-- index on time is needed. Read as far as there is something to prune.
SELECT number, id, completed_at, parent FROM history WHERE number >= ?1 ORDER BY number;
