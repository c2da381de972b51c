-- Moving jobs on that are due, suspended or lost, and deleting what is old.

-- name: due
-- Make scheduled jobs pending whose time has come; see functions/due/due_jobs.sql.
SELECT * FROM due_jobs($1, $2)

-- name: expire
-- Cancel jobs that have not started in time; see functions/due/expire_jobs.sql.
SELECT ids::text[], next_in FROM expire_jobs($1, $2, $3)

-- name: wake
-- Make suspended jobs pending whose wait is over; see functions/due/wake_jobs.sql.
SELECT unnest(wake_jobs($1, $2))::text

-- name: suspended
-- Jobs that are suspended, in the order of ids, after one of them.
SELECT id::text FROM job WHERE awaits IS NOT NULL AND id > $1 ORDER BY id LIMIT $2

-- name: lost
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
    -- In the order of the index worker_dead, so that it is used also without statistics.
    (SELECT number FROM worker
    WHERE died_at IS NOT NULL AND emptied_of IS DISTINCT FROM died_at ORDER BY number)
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

-- name: prune
-- Delete finished jobs, the oldest first, with their keys, expiry and entries: those older than $2 seconds
-- and those beyond the newest $3. Several callers share the work: each skips what another deletes.
-- Those whose parent stays are spared. Of those that kept artifacts a record tells.
WITH edge AS MATERIALIZED (
    -- The last one that goes.
    SELECT b.completed_at, b.id
    FROM (
        SELECT clock_timestamp() + ($1::double precision - $2::double precision)
                * interval '1 second' AS completed_at,
            'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid AS id
        WHERE $2 IS NOT NULL
        UNION ALL
        (SELECT k.completed_at, k.id FROM history k WHERE $3::bigint IS NOT NULL
         ORDER BY k.completed_at DESC, k.id DESC OFFSET $3::bigint LIMIT 1)
    ) b
    ORDER BY b.completed_at DESC, b.id DESC LIMIT 1
), doomed AS MATERIALIZED (
    SELECT h.id FROM history h
    WHERE (h.completed_at, h.id) <= (SELECT e.completed_at, e.id FROM edge e)
        -- Not NOT EXISTS, for which the planner may read all jobs first.
        AND (h.parent IS NULL OR (
            -- A parent stays that has not finished, is not old enough, or whose own parent stays.
            WITH RECURSIVE above (id) AS (
                SELECT h.parent
                UNION
                -- OFFSET 0: one look-up for each, whatever the planner believes.
                SELECT p.parent FROM above a
                CROSS JOIN LATERAL (SELECT o.parent FROM history o WHERE o.id = a.id OFFSET 0) p
                WHERE p.parent IS NOT NULL
            )
            SELECT a.id FROM above a
            WHERE (SELECT j.id FROM job j WHERE j.id = a.id) IS NOT NULL
                OR (SELECT (p.completed_at, p.id) > (SELECT e.completed_at, e.id FROM edge e)
                    FROM history p WHERE p.id = a.id)
            LIMIT 1
        ) IS NULL)
    ORDER BY h.completed_at, h.id LIMIT $4::integer
    FOR UPDATE OF h SKIP LOCKED
), gone AS (
    DELETE FROM history WHERE id = ANY (ARRAY(SELECT id FROM doomed))
    RETURNING id, task, key
), keys AS (
    DELETE FROM job_key k USING gone g
    WHERE k.key = ANY (ARRAY[g.key]) AND k.task = g.task AND k.job_id = g.id
), expiries AS (
    DELETE FROM expiry WHERE job_id = ANY (ARRAY(SELECT id FROM doomed))
), entries AS (
    DELETE FROM entry WHERE job_id = ANY (ARRAY(SELECT id FROM doomed))
    RETURNING job_id, kind
), records AS (
    INSERT INTO record AS r (kind, key, version, body, updated_at)
    SELECT 'pruned-artifacts', e.job_id::text, 1, '{}',
        clock_timestamp() + $1::double precision * interval '1 second'
    FROM (SELECT DISTINCT job_id FROM entries WHERE kind = 'artifact') e ORDER BY e.job_id
    ON CONFLICT (kind, key) DO UPDATE
        SET version = r.version + 1, updated_at = EXCLUDED.updated_at
)
SELECT count(*)::integer FROM gone

-- name: prune_lanes
-- Delete idle lanes that are stored behind $1, and answer the place of the last of them and how many.
-- Always safe: whoever admits a job makes the lane it needs. One that somebody has locked is about to
-- be used. Step by step in the order of places, so that all steps together read the table once.
WITH idle AS MATERIALIZED (
    SELECT l.ctid AS place FROM lane l
    WHERE l.ctid > $1::tid AND l.used = 0 LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM lane WHERE ctid = ANY (ARRAY(SELECT place FROM idle))
)
SELECT max(place), count(*)::integer FROM idle

-- name: prune_queues
-- Forget queues that have had no new job for a day and are not paused, and answer how many. Always safe:
-- claims look for jobs, and a job that is there shows its queue. A time that is ahead by more than a day
-- is of a clock that was wrong. Both are found by their time, whatever else was used today.
WITH now AS MATERIALIZED (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
), unused AS MATERIALIZED (
    SELECT q.name FROM queue q
    WHERE NOT q.paused AND q.used_at < (SELECT moment - interval '1 day' FROM now)
    ORDER BY q.used_at LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), ahead AS MATERIALIZED (
    SELECT q.name FROM queue q
    WHERE NOT q.paused AND q.used_at > (SELECT moment + interval '1 day' FROM now)
    ORDER BY q.used_at LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM queue
    WHERE name = ANY (ARRAY(SELECT name FROM unused UNION ALL SELECT name FROM ahead))
)
SELECT greatest((SELECT count(*) FROM unused), (SELECT count(*) FROM ahead))::integer

-- name: prune_workers
-- Forget workers that died more than a day ago and hold nothing.
WITH now AS MATERIALIZED (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
)
DELETE FROM worker w
WHERE w.died_at < (SELECT moment - interval '1 day' FROM now)
    AND NOT EXISTS (SELECT FROM job j WHERE j.holder = w.number AND j.state = 3)

-- name: mark_emptied_workers
-- Mark dead workers that hold nothing; see functions/control/mark_emptied_workers.sql.
SELECT mark_emptied_workers()
