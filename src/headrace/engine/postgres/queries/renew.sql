-- Extend a worker's lease and tell which of its jobs should stop. A lease that has lapsed is not
-- extended: the worker is dead then, whether or not a sweep has found it yet. No row: it is dead
-- or unknown.
WITH now AS (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
), lapsed AS (
    UPDATE worker w SET died_at = now.moment FROM now
    WHERE w.id = $2 AND w.died_at IS NULL AND w.lease_until <= now.moment
), renewed AS (
    UPDATE worker w SET heartbeat_at = now.moment,
        lease_until = now.moment + $3::double precision * interval '1 second',
        running = $4, memory_bytes = $5, cpu_percent = $6, healthy = $7
    FROM now
    WHERE w.id = $2 AND w.died_at IS NULL AND w.lease_until > now.moment
    RETURNING w.number
)
SELECT ARRAY(
    SELECT j.id::text FROM job j
    WHERE j.holder = renewed.number AND j.state = 3 AND j.cancel_reason IS NOT NULL
)
FROM renewed
