-- The ready jobs of one queue, best first, from the index alone. One queue by equality: the index
-- job_ready is in this order only within a queue.
SELECT priority, seq FROM job
WHERE queue = ?1 AND state = 2
ORDER BY priority DESC, seq
LIMIT ?2;
