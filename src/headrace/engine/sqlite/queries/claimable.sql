-- The ready jobs of one queue with the token and attempt that a claim will give them, as one JSON
-- text: a row each would hand Python's global lock back and forth for every one of them. Arguments
-- and meta of more than ?4 bytes are left out; claimable_large.sql has them.
-- One queue by equality: the index job_ready is in this order only within a queue.
SELECT CAST(json_group_array(json_array(
    id, token + 1, attempt + 1, task, queue,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ?4 THEN CAST(args AS TEXT) END,
    max_attempts, timeout, on_crash, priority, lane, key,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ?4 THEN CAST(meta AS TEXT) END,
    max(?3 - run_at, 0.0), cancel_reason, parent, seq
)) AS BLOB)
FROM (
    SELECT * FROM job
    WHERE queue = ?1 AND state = 2 AND reserved = 0
    ORDER BY priority DESC, seq
    LIMIT ?2
);
