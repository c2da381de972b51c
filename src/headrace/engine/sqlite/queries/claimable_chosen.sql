-- Ready jobs that were chosen over several queues, as claimable.sql has them.
SELECT CAST(json_group_array(json_array(
    job.id, token + 1, attempt + 1, task, queue,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ?3 THEN CAST(args AS TEXT) END,
    max_attempts, timeout, on_crash, priority, lane, job.key,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ?3 THEN CAST(meta AS TEXT) END,
    max(?2 - run_at, 0.0), cancel_reason, job.parent, seq
)) AS BLOB)
FROM json_each(?1) AS chosen
CROSS JOIN job ON job.seq = chosen.value;
