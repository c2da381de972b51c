-- Lease chosen ready jobs to one worker. The caller chose them in the same transaction. Token and
-- attempt grow with every claim, so an earlier attempt's writes are told apart and refused.
UPDATE job SET state = 3, reserved = 0, token = token + 1, attempt = attempt + 1, worker = ?1,
    started_at = ?2
WHERE seq IN (SELECT value FROM json_each(?3));
