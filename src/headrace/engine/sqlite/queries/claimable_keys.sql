-- The places in line of one queue's ready jobs, best first, from the index alone. For choosing over
-- several queues: read only as far as needed.
SELECT priority, seq FROM job
WHERE queue = ?1 AND state = 2 AND reserved = 0
ORDER BY priority DESC, seq
LIMIT ?2;
