-- Lease chosen ready jobs to one worker. The caller chose them in the same transaction. Token and
-- attempt grow with every claim, so an earlier attempt's writes are told apart and refused.
-- RETURNING has no order: the caller sorts.
UPDATE job SET state = 3, token = token + 1, attempt = attempt + 1, worker = ?1, started_at = ?2
WHERE seq IN (SELECT value FROM json_each(?3))
RETURNING id, token, attempt, task, queue, args, max_attempts, timeout, on_crash, priority, lane,
          key, meta, started_at, run_at, cancel_reason, seq;
