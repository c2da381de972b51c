-- Extend a lease that has not lapsed. One that has is never revived: its jobs may have others by
-- now.
UPDATE worker SET
    heartbeat_at = ?2, lease_until = ?3, running = ?4, memory_bytes = ?5, cpu_percent = ?6,
    healthy = ?7
WHERE id = ?1 AND died_at IS NULL AND lease_until > ?2;
