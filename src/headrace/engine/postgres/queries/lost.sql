-- Declare workers with a lapsed lease dead and tell which jobs dead workers hold. Nothing else
-- changes: the tokens stay good, and whoever settles a job first decides.
WITH now AS (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
), lapsed AS (
    UPDATE worker w SET died_at = now.moment FROM now
    WHERE w.number = ANY (ARRAY(
        SELECT l.number FROM worker l, now
        WHERE l.died_at IS NULL AND l.lease_until <= now.moment
        ORDER BY l.number FOR UPDATE OF l SKIP LOCKED
    ))
    RETURNING w.number
), ahead AS (
    -- Written when the clock was ahead: it lasts as long as it was to last, from now.
    UPDATE worker w
    SET lease_until = now.moment + (w.lease_until - w.heartbeat_at), heartbeat_at = now.moment
    FROM now
    WHERE w.number = ANY (ARRAY(
        SELECT l.number FROM worker l, now
        WHERE l.died_at IS NULL AND l.heartbeat_at > now.moment + interval '1 second'
            AND l.lease_until > now.moment
        ORDER BY l.number FOR UPDATE OF l SKIP LOCKED
    ))
), dead AS (
    SELECT number FROM lapsed
    UNION ALL
    SELECT number FROM worker WHERE died_at IS NOT NULL AND NOT emptied
)
SELECT j.id, j.token, j.attempt, j.task, j.queue, j.args, j.max_attempts, j.timeout,
    j.fail_on_crash, j.priority, j.lane, j.key, j.meta,
    greatest(date_part('epoch', j.started_at - j.run_at), 0) AS wait,
    j.cancel_reason IS NOT NULL AS cancel_requested, j.parent,
    j.worker, j.started_at, greatest(date_part('epoch', now.moment - j.started_at), 0) AS age
FROM now, dead
CROSS JOIN LATERAL (
    SELECT * FROM job WHERE job.holder = dead.number AND job.state = 3 LIMIT $2::integer
) j
LIMIT $2::integer
