-- What people see; nothing here writes.

-- name: get_unfinished
-- Jobs by id in the hot table; get_finished.sql looks in history from the same snapshot.
SELECT unfinished_job.* FROM json_each(?1) AS asked
CROSS JOIN unfinished_job ON unfinished_job.id = asked.value;

-- name: get_finished
-- Jobs by id in history.
SELECT finished_job.* FROM json_each(?1) AS asked
CROSS JOIN finished_job ON finished_job.id = asked.value;

-- name: list_unfinished
-- One page of unfinished jobs, walking the index on id from the cursor down.
SELECT * FROM unfinished_job
WHERE id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  -- include: job_filter
ORDER BY id DESC
LIMIT :limit;

-- name: list_running
-- One page of running jobs: from the index of the few that run, however many others there are.
SELECT * FROM unfinished_job
WHERE state = 3 AND +id < :cursor
  -- include: job_filter
ORDER BY +id DESC
LIMIT :limit;

-- name: list_finished
-- One page of finished jobs, walking the index on id from the cursor down.
SELECT * FROM finished_job
WHERE id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  -- include: job_filter
ORDER BY id DESC
LIMIT :limit;

-- name: list_unsuccessful
-- One page of finished jobs in one state other than completed: the index history_unsuccessful leads
-- to them without a step over the completed ones.
SELECT * FROM finished_job
WHERE state <> 4 AND state = json_extract(:states, '$[0]') AND id < :cursor
  -- include: job_filter
ORDER BY id DESC
LIMIT :limit;

-- name: list_unfinished_keyed
-- One page of unfinished jobs that have a key: the few that job_key names.
SELECT * FROM unfinished_job
WHERE id IN (SELECT job_id FROM job_key WHERE job_key.key = :key)
  AND +id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  AND (:parent IS NULL OR +parent = :parent)
  -- include: job_filter
ORDER BY id DESC
LIMIT :limit;

-- name: list_finished_keyed
-- One page of finished jobs that have a key: the few that job_key names.
SELECT * FROM finished_job
WHERE id IN (SELECT job_id FROM job_key WHERE job_key.key = :key)
  AND +id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  AND (:parent IS NULL OR +parent = :parent)
  -- include: job_filter
ORDER BY id DESC
LIMIT :limit;

-- name: list_unfinished_children
-- One page of a job's unfinished children, found in the index of children.
SELECT * FROM unfinished_job
WHERE parent = :parent AND +id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  -- include: job_filter
ORDER BY id DESC
LIMIT :limit;

-- name: list_finished_children
-- One page of a job's finished children, walking the index of children from the cursor down.
SELECT * FROM finished_job
WHERE parent = :parent AND id < :cursor AND +state IN (SELECT value FROM json_each(:states))
  -- include: job_filter
ORDER BY id DESC
LIMIT :limit;

-- name: queue_names
-- Every queue that has been used or paused.
SELECT name, paused FROM queue ORDER BY name;

-- name: queue_ready
-- Ready jobs by queue, from the index job_ready alone. Those in queue_reserved.sql are others.
SELECT queue, count(*), min(run_at) FROM job WHERE state = 2 AND reserved = 0 GROUP BY queue;

-- name: queue_reserved
-- Ready jobs that only workers that know their task are offered, by queue and task, from the index
-- job_reserved alone.
SELECT queue, task, count(*), min(run_at) FROM job WHERE state = 2 AND reserved = 1
GROUP BY queue, task;

-- name: queue_waiting
-- Waiting jobs by queue, from the index job_waiting alone.
SELECT queue, count(*), min(run_at) FROM job WHERE state = 1 GROUP BY queue;

-- name: queue_running
-- Running jobs by queue: a walk over the index of the few that run.
SELECT queue, count(*) FROM job WHERE state = 3 GROUP BY queue;

-- name: queue_scheduled
-- Scheduled jobs by queue.
SELECT queue, count(*) FROM job WHERE state = 0 GROUP BY queue;

-- name: lanes
-- Lanes with holders or waiting jobs, the most waiting first. A lane with waiting jobs always has a
-- row, because its places are taken. The oldest waiting job tells the age.
SELECT lane.queue, lane.lane, lane.width, lane.used, coalesce(line.waiting, 0) AS waiting,
       line.oldest
FROM lane
LEFT JOIN (
    SELECT queue, lane, count(*) AS waiting, min(run_at) AS oldest
    FROM job WHERE state = 1 GROUP BY queue, lane
) AS line ON line.queue = lane.queue AND line.lane = lane.lane
WHERE (?1 IS NULL OR lane.queue = ?1) AND (?2 IS NULL OR lane.lane = ?2)
  AND (lane.used > 0 OR line.waiting > 0)
ORDER BY waiting DESC, lane.queue, lane.lane
LIMIT ?3;

-- name: lane_holders
-- The jobs that hold a place in one lane: ready, running, and retries that keep their place; by
-- priority, then arrival.
SELECT id FROM (
    SELECT id, priority, seq FROM job
    WHERE queue = ?1 AND lane = ?2 AND state = 2 AND pinned = 0 AND lane IS NOT NULL
    UNION
    SELECT id, priority, seq FROM job WHERE queue = ?1 AND lane = ?2 AND pinned = 1
    UNION
    SELECT id, priority, seq FROM job WHERE +queue = ?1 AND +lane = ?2 AND state = 3
)
ORDER BY priority DESC, seq;
