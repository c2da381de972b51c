-- Introduce a worker. Earlier ones of its name are dead from now on: their jobs are lost to them.
-- A repeated call finds its own row and starts its lease anew.
WITH now AS (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
), replaced AS (
    UPDATE worker SET died_at = now.moment FROM now
    WHERE name = $3 AND id <> $2 AND died_at IS NULL
)
INSERT INTO worker (id, name, host, pid, version, queues, slots, tasks, started_at, heartbeat_at,
    lease_until)
SELECT $2, $3, $4, $5, $6, $7, $8, $10, now.moment, now.moment,
    now.moment + $9::double precision * interval '1 second'
FROM now
ON CONFLICT (id) DO UPDATE SET heartbeat_at = EXCLUDED.heartbeat_at,
    lease_until = EXCLUDED.lease_until, died_at = NULL, emptied = false
