-- The ready jobs of one queue, best first, with the token and attempt that a claim will give them.
-- One queue by equality: the index job_ready is in this order only within a queue.
SELECT id, token + 1, attempt + 1, task, queue, args, max_attempts, timeout, on_crash, priority,
       lane, key, meta, max(?3 - run_at, 0.0), cancel_reason, parent, seq
FROM job
WHERE queue = ?1 AND state = 2
ORDER BY priority DESC, seq
LIMIT ?2;
