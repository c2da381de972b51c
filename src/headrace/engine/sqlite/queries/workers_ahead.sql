-- A lease that was written when the clock was ahead lasts as long as it was to last, from now.
UPDATE worker SET lease_until = ?1 + (lease_until - heartbeat_at), heartbeat_at = ?1
WHERE died_at IS NULL AND heartbeat_at > ?1 + 1;
