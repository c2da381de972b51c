-- Server settings, and the invariants of the store.

-- name: report
-- What the server tells about itself.
SELECT current_setting('server_version') AS version,
    (SELECT max(m.version) FROM migration m) AS schema_version,
    date_part('epoch', clock_timestamp()) AS now,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('autovacuum') AS autovacuum,
    pg_database_size(current_database()) AS size,
    current_setting('max_connections')::integer AS max_connections,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::integer
        AS connections,
    (SELECT date_part('epoch', clock_timestamp() - min(a.xact_start)) FROM pg_stat_activity a
     WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()) AS oldest_transaction

-- name: audit
-- The invariants, over the whole store in one snapshot. No row means that all is well.
WITH job_lane AS (
    SELECT queue, lane, max(width) AS width,
        count(*) FILTER (WHERE state IN (2, 3) OR pinned) AS holders,
        count(*) FILTER (WHERE state = 1) AS waiting
    FROM job WHERE lane IS NOT NULL GROUP BY queue, lane
), place AS (
    SELECT queue, lane, coalesce(l.width, j.width) AS width, coalesce(l.used, 0) AS used,
        coalesce(j.holders, 0) AS holders, coalesce(j.waiting, 0) AS waiting
    FROM job_lane j FULL JOIN lane l USING (queue, lane)
)
(SELECT 'lane' AS subject,
    format('lane %L of queue %L counts %s places taken, but %s jobs hold one',
        lane, queue, used, holders) AS detail
 FROM place WHERE used <> holders LIMIT 100)
UNION ALL
(SELECT 'lane', format('lane %L of queue %L has a free place (%s of %s) and %s jobs waiting',
    p.lane, p.queue, p.used, p.width, p.waiting)
 FROM place p
 WHERE p.used < p.width AND p.waiting > 0
    AND NOT EXISTS (
        SELECT FROM lane_admission a WHERE a.queue = p.queue AND a.lane = p.lane
    ) LIMIT 100)
UNION ALL
(SELECT 'job', format('job %s is both finished and unfinished', j.id)
 FROM job j JOIN history h ON h.id = j.id LIMIT 100)
UNION ALL
(SELECT 'job', format('job %s runs on a worker that is not known', j.id)
 FROM job j WHERE j.state = 3
    AND NOT EXISTS (SELECT FROM worker w WHERE w.number = j.holder) LIMIT 100)
UNION ALL
(SELECT 'job', format('job %s runs on a dead worker that is marked to hold nothing', j.id)
 FROM job j JOIN worker w ON w.number = j.holder 
 WHERE j.state = 3 AND w.emptied_of = w.died_at LIMIT 100)
UNION ALL
(SELECT 'job', format('job %s cannot be as it is in state %s', j.id, j.state)
 FROM job j
 WHERE NOT (
    CASE j.state
        WHEN 0 THEN true
        WHEN 1 THEN j.lane IS NOT NULL AND NOT j.pinned
        WHEN 2 THEN true
        WHEN 3 THEN j.worker IS NOT NULL AND j.started_at IS NOT NULL
        ELSE false
    END
    AND (NOT j.pinned OR (j.lane IS NOT NULL AND j.hold))
    AND (j.parked IS NULL OR j.pinned)
    AND (j.awaits IS NULL OR j.state = 0)
    AND (j.child_group IS NULL OR j.parent IS NOT NULL)
    AND j.width >= 1 AND j.attempt BETWEEN 0 AND j.token
 ) LIMIT 100)
UNION ALL
(SELECT 'rate', format('job %s has a rate, but its lane %L of queue %L has none', j.id, j.lane, j.queue)
 FROM job j
 WHERE j.rate IS NOT NULL AND NOT EXISTS (
    SELECT FROM rate r WHERE r.queue = j.queue AND r.lane = j.lane AND r.count IS NOT NULL
 ) LIMIT 100)
UNION ALL
(SELECT 'rate', format('job %s is parked, but nothing is kept of its lane %L of queue %L', j.id, j.lane, j.queue)
 FROM job j
 WHERE j.state = 0 AND j.parked IS NOT NULL AND NOT EXISTS (
    SELECT FROM rate r WHERE r.queue = j.queue AND r.lane = j.lane
 ) LIMIT 100)
UNION ALL
(SELECT 'job', format('job %s is finished, but in state %s', h.id, h.state)
 FROM history h WHERE h.state <> 4 AND h.state NOT BETWEEN 5 AND 7 LIMIT 100)
UNION ALL
(SELECT 'key', format('key %L of task %L belongs to job %s, which does not exist',
    k.key, k.task, k.job_id)
 FROM job_key k
 WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = k.job_id)
    AND NOT EXISTS (SELECT FROM history h WHERE h.id = k.job_id) LIMIT 100)
UNION ALL
(SELECT 'entry', format('entry %L of job %s, which does not exist', e.name, e.job_id)
 FROM entry e
 WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = e.job_id)
    AND NOT EXISTS (SELECT FROM history h WHERE h.id = e.job_id) LIMIT 100)
