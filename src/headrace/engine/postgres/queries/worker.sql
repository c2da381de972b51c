-- What a worker does: its lease, exchanges, notes.

-- name: register
-- Introduce a worker. Earlier ones of its name are dead from now on: their jobs are lost to them.
-- A repeated call finds its own row and starts its lease anew.
WITH now AS (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
), replaced AS (
    UPDATE worker SET died_at = now.moment FROM now
    WHERE name = $3 AND id <> $2 AND died_at IS NULL
)
INSERT INTO worker (id, name, host, pid, version, queues, slots, tasks, schema_version, started_at,
    heartbeat_at, lease_until)
SELECT $2, $3, $4, $5, $6, $7, $8, $10, $11, now.moment, now.moment,
    now.moment + $9::double precision * interval '1 second'
FROM now
ON CONFLICT (id) DO UPDATE SET heartbeat_at = EXCLUDED.heartbeat_at,
    lease_until = EXCLUDED.lease_until, died_at = NULL

-- name: know
-- A living worker knows these tasks from now on.
UPDATE worker SET tasks = $2 WHERE id = $1 AND died_at IS NULL

-- name: renew
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

-- name: retire
-- Let a worker take leave; see functions/control/retire_worker.sql.
SELECT retire_worker($1, $2)

-- name: exchange
-- Record outcomes and lease ready jobs in one transaction; see functions/claim/exchange.sql.
SELECT * FROM exchange(
    p_offset => $1, p_id => $2, p_token => $3, p_kind => $4, p_delay => $5, p_result => $6,
    p_error_type => $7, p_error => $8, p_entry => $9, p_awaits => $10, p_lanes => $11,
    p_worker => $12, p_queues => $13, p_limit => $14, p_from => $15, p_lane_queue => $16,
    p_lane => $17, p_lane_jobs => $18, p_hold_lane => $19, p_free => $20
)

-- name: settle_and_insert
-- Record outcomes and store what follows; see functions/settle/settle_and_insert.sql.
SELECT settle_and_insert(
    p_offset => $1, p_settled => $2, p_token => $3, p_kind => $4, p_put_off => $5, p_result => $6,
    p_error_type => $7, p_error => $8, p_entry => $9, p_awaits => $10,
    p_due_queue => $11, p_due_lane => $12, p_due_width => $13, p_hold_lane => $14,
    p_id => $15, p_args => $16, p_task => $17, p_queue => $18, p_priority => $19,
    p_delay => $20, p_run_at => $21, p_key => $22, p_lane => $23, p_width => $24, p_hold => $25,
    p_max_attempts => $26, p_timeout => $27, p_fail_on_crash => $28, p_source => $29,
    p_meta => $30, p_parent => $31, p_group => $32, p_expires_at => $33, p_expires_in => $34,
    p_rate => $35
)

-- name: note
-- Record what running attempts tell; see functions/settle/note_jobs.sql.
SELECT note_jobs(
    p_offset => $1, p_id => $2, p_token => $3, p_stage => $4, p_progress => $5, p_message => $6,
    p_entry_job => $7, p_entry_token => $8, p_kind => $9, p_name => $10, p_body => $11
)

-- name: entries
-- What was kept with a job, in the order it was first written.
SELECT kind, name, body, token, at FROM entry
WHERE job_id = $1 AND ($2::text IS NULL OR kind = $2)
ORDER BY ordinal

-- name: held
-- The jobs that are leased to a worker.
SELECT j.id, j.token, j.attempt, j.task, j.queue, j.args, j.max_attempts, j.timeout,
    j.fail_on_crash, j.priority, j.lane, j.key, j.meta,
    greatest(date_part('epoch', j.started_at - j.run_at), 0) AS wait,
    j.cancel_reason IS NOT NULL AS cancel_requested, j.parent
FROM worker w JOIN job j ON j.holder = w.number AND j.state = 3
WHERE w.id = $1
ORDER BY j.priority DESC, j.seq

-- name: now
-- The server's time, in seconds since the epoch.
SELECT date_part('epoch', clock_timestamp())

-- name: notify_work
-- Notify all workers that jobs are ready. Nothing is lost if the server forgets it in a crash, so it
-- need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify(current_schema(), 'work')
