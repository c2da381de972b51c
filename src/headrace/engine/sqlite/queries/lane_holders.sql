-- The jobs that hold a place in one lane: ready, running, and retries that keep their place; by
-- priority, then arrival.
SELECT id FROM (
    SELECT id, priority, seq FROM job
    WHERE queue = ?1 AND lane = ?2 AND state = 2 AND pinned = 0 AND lane IS NOT NULL
    UNION
    SELECT id, priority, seq FROM job WHERE queue = ?1 AND lane = ?2 AND pinned = 1
    UNION
    SELECT id, priority, seq FROM job WHERE +queue = ?1 AND +lane = ?2 AND state = 3
)
ORDER BY priority DESC, seq;
