-- Every worker that is remembered, living ones first, then by name.
SELECT id, name, host, pid, version, queues, slots, running, memory_bytes, cpu_percent, healthy,
       started_at, heartbeat_at, lease_until, died_at, tasks, schema_version
FROM worker
ORDER BY died_at IS NOT NULL OR lease_until <= ?1, name, started_at DESC;
