-- Introduce a worker and start its lease. Saying it twice is harmless.
INSERT INTO worker (
    id, name, host, pid, version, queues, slots, started_at, heartbeat_at, lease_until, tasks,
    schema_version
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11)
ON CONFLICT (id) DO UPDATE SET
    heartbeat_at = excluded.heartbeat_at, lease_until = excluded.lease_until, died_at = NULL;
