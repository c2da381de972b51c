-- The ready job of one lane that goes back first if a better one arrives. A pinned one (a retry
-- that keeps its place) never goes back.
SELECT priority, seq FROM job
WHERE queue = ?1 AND lane = ?2 AND state = 2 AND pinned = 0 AND lane IS NOT NULL
ORDER BY priority, seq DESC
LIMIT 1;
