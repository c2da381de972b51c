-- Ready jobs that were chosen over several queues, in the order chosen and in the columns of
-- claimable.sql.
SELECT job.id, token + 1, attempt + 1, task, queue, args, max_attempts, timeout, on_crash, priority,
       lane, job.key, meta, max(?2 - run_at, 0.0), cancel_reason, job.parent, seq
FROM json_each(?1) AS chosen
CROSS JOIN job ON job.seq = chosen.value
ORDER BY chosen.key;
