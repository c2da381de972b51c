-- The jobs that are leased to one worker, in the order they were claimed.
SELECT id, token, attempt, task, queue, args, max_attempts, timeout, on_crash, priority, lane,
       key, meta, max(started_at - run_at, 0.0), cancel_reason, parent
FROM job WHERE worker = ?1 AND state = 3
ORDER BY started_at, priority DESC, seq;
