-- Workers, alive ones first, then by name.
SELECT id, name, host, pid, version, queues, slots, running, memory_bytes, cpu_percent, healthy,
    died_at IS NULL
        AND lease_until > clock_timestamp() + $1::double precision * interval '1 second' AS alive,
    started_at, heartbeat_at, lease_until, tasks
FROM worker
ORDER BY alive DESC, name, started_at DESC
