-- Finished jobs from number ?1 on, the oldest first: numbers grow with the time of finishing, so no
-- index on time is needed. Read as far as there is something to prune. The last column tells whether
-- its parent is unfinished.
SELECT number, id, completed_at,
       parent IS NOT NULL AND EXISTS (SELECT 1 FROM job WHERE job.id = history.parent)
FROM history WHERE number >= ?1 ORDER BY number;
