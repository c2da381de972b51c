-- What people see.

-- name: get
-- Jobs by id, wherever they are: one snapshot, so a job that is just finishing is seen once.
SELECT
    -- include: shown_job
FROM (SELECT *, false AS brief FROM every_job) AS found WHERE id = ANY ($1::uuid[])

-- name: get_part
-- The first of some jobs by id, as many as fit into $2 bytes; with $3 the first one in any case. The
-- last columns tell how far they reach: bytes up to this job, and bytes of all that were asked for.
-- Neither needs a long value to be read: its length is kept beside it. Each job is looked up by
-- itself: the connection for views would rather read a small table whole, and keep
-- that plan when it has grown.
SELECT
    -- include: shown_job
    , reached, total
FROM (
    SELECT *, sum(size) OVER (ORDER BY id) AS reached, sum(size) OVER () AS total,
        row_number() OVER (ORDER BY id) AS place
    FROM (
        SELECT found.*, false AS brief, octet_length(args)::bigint + coalesce(octet_length(result), 0) AS size
        FROM unnest($1::uuid[]) AS asked (asked_id)
        CROSS JOIN LATERAL (SELECT * FROM every_job WHERE id = asked_id OFFSET 0) AS found
    ) AS sized
) AS summed
WHERE reached <= $2::bigint OR ($3::boolean AND place = 1)

-- name: list
-- A page of jobs, the newest first, with $21 without what may be large: such a value is not even
-- fetched. A row without an id tells where to go on; see functions/views/list_jobs.sql.
SELECT
    -- include: shown_job
    , reached
FROM list_jobs(
    -- include: list_arguments
)
LEFT JOIN LATERAL (
    SELECT *, $21::boolean AS brief FROM every_job WHERE id = job_id OFFSET 0
) AS found ON true
ORDER BY coalesce(job_id, reached) DESC

-- name: count
-- How many there are, and whether all were looked at.
SELECT count(job_id) AS amount, count(reached) = 0 AS complete
FROM list_jobs(
    -- include: list_arguments
)

-- name: queues
-- Every queue that is known or has jobs, with its depth, the age of its oldest pending job, and tasks of
-- reserved jobs with how many of them there are.
SELECT name, coalesce(q.paused, false) AS paused, coalesce(j.scheduled, 0) AS scheduled,
    coalesce(j.waiting, 0) AS waiting, coalesce(j.ready, 0) AS ready,
    coalesce(j.running, 0) AS running,
    CASE WHEN j.pending_since IS NOT NULL THEN greatest(date_part('epoch',
        clock_timestamp() + $1::double precision * interval '1 second' - j.pending_since), 0) END
        AS oldest_age,
    r.tasks, r.amounts
FROM queue q
FULL JOIN (
    SELECT s.queue AS name,
        (sum(s.amount) FILTER (WHERE s.state = 0))::bigint AS scheduled,
        (sum(s.amount) FILTER (WHERE s.state = 1))::bigint AS waiting,
        (sum(s.amount) FILTER (WHERE s.state = 2))::bigint AS ready,
        (sum(s.amount) FILTER (WHERE s.state = 3))::bigint AS running,
        min(s.since) FILTER (WHERE s.state IN (1, 2)) AS pending_since
    FROM (
        -- All jobs are read here: as little as possible is done with each.
        SELECT queue, state, count(*) AS amount, min(run_at) AS since FROM job
        GROUP BY queue, state
    ) s
    GROUP BY s.queue
) j USING (name)
LEFT JOIN (
    SELECT x.queue AS name, array_agg(x.task) AS tasks, array_agg(x.amount) AS amounts
    FROM (
        SELECT queue, task, count(*) AS amount FROM job
        WHERE state = 2 AND reserved GROUP BY queue, task
    ) x
    GROUP BY x.queue
) r USING (name)
ORDER BY name

-- name: lanes
-- Lanes with holders or waiting jobs, the most waiting first. Only the jobs of lanes are read.
SELECT j.queue, j.lane, coalesce(l.width, max(j.width)) AS width,
    count(*) FILTER (WHERE j.state IN (2, 3) OR j.pinned) AS used,
    count(*) FILTER (WHERE j.state = 1) AS waiting,
    array_agg(j.id::text ORDER BY j.priority DESC, j.seq)
        FILTER (WHERE j.state IN (2, 3) OR j.pinned) AS holders,
    CASE WHEN count(*) FILTER (WHERE j.state = 1) > 0 THEN greatest(date_part('epoch',
        clock_timestamp() + $1::double precision * interval '1 second'
        - min(j.run_at) FILTER (WHERE j.state = 1)), 0) END AS oldest_age
FROM job j LEFT JOIN lane l ON l.queue = j.queue AND l.lane = j.lane
WHERE j.lane IS NOT NULL AND (j.state > 0 OR j.pinned)
    AND ($2::text IS NULL OR j.queue = $2) AND ($3::text IS NULL OR j.lane = $3)
GROUP BY j.queue, j.lane, l.width
ORDER BY waiting DESC, j.queue, j.lane
LIMIT $4

-- name: workers
-- Workers, alive ones first, then by name.
SELECT id, name, host, pid, version, queues, slots, running, memory_bytes, cpu_percent, healthy,
    died_at IS NULL
        AND lease_until > clock_timestamp() + $1::double precision * interval '1 second' AS alive,
    started_at, heartbeat_at, lease_until, tasks, schema_version
FROM worker
ORDER BY alive DESC, name, started_at DESC
