-- What people see; nothing here writes.

-- name: get_unfinished
-- Jobs by id in the hot table; get_finished looks in history from the same snapshot.
SELECT unfinished_job.* FROM json_each(?) AS asked
CROSS JOIN unfinished_job ON unfinished_job.id = asked.value;

-- name: get_finished
-- Jobs by id in history.
SELECT finished_job.* FROM json_each(?) AS asked
CROSS JOIN finished_job ON finished_job.id = asked.value;

-- name: get_unfinished_brief
-- As get_unfinished, without what may be large.
SELECT
    -- include: brief_job
FROM unfinished_job WHERE id IN (SELECT value FROM json_each(?));

-- name: get_finished_brief
-- As get_finished, without what may be large.
SELECT
    -- include: brief_job
FROM finished_job WHERE id IN (SELECT value FROM json_each(?));

-- name: list_unfinished
-- The next unfinished jobs: the index on id. This and the other `list_…` go over :step jobs from the
-- cursor down, and answer how many there were, the lowest id, and the ids of those that match as JSON:
-- a row each would hand Python's global lock back and forth for every one of them. CASE reads no column
-- behind the first condition that is not met, and none that nobody asks for; AND alone would.
-- include: unfinished_matches
    WHERE id < :cursor
    ORDER BY id DESC
    LIMIT :step
);

-- name: list_in_states
-- The next unfinished jobs in some states, however many others there are; in_states_count has found
-- that they are few.
-- include: unfinished_matches
    WHERE seq IN (
        -- include: seqs_in_states
    ) AND +id < :cursor
    ORDER BY +id DESC
    LIMIT :step
);

-- name: in_states_count
-- How many unfinished jobs are in some states, up to :most, from the indexes alone.
SELECT count(*) FROM (
    SELECT seq FROM (
        -- include: seqs_in_states
    ) LIMIT :most
);

-- name: job_count
-- How many jobs there are, up to a limit, from the shortest indexes.
SELECT count(*) FROM (SELECT 1 FROM job UNION ALL SELECT 1 FROM history LIMIT ?);

-- name: list_finished
-- The next finished jobs: the index on id, which tells the number as well, so that those outside of a
-- window of numbers are passed over without a look at the table.
-- include: finished_matches
    WHERE id < :cursor AND +number BETWEEN :first AND :last
    ORDER BY id DESC
    LIMIT :step
);

-- name: list_unsuccessful
-- The next finished jobs in one state other than completed: the index history_unsuccessful leads to
-- them without a step over the completed ones.
-- include: finished_matches
    WHERE state <> 4 AND state = json_extract(:states, '$[0]') AND id < :cursor
      AND +number BETWEEN :first AND :last
    ORDER BY id DESC
    LIMIT :step
);

-- name: list_window
-- The next finished jobs of a window of numbers that is small.
-- include: finished_matches
    WHERE number BETWEEN :first AND :last AND +id < :cursor
    ORDER BY +id DESC
    LIMIT :step
);

-- name: list_unfinished_keyed
-- The next unfinished jobs that have a key: the few that job_key names.
-- include: unfinished_matches
    WHERE id IN (SELECT job_id FROM job_key WHERE job_key.key = :key) AND +id < :cursor
    ORDER BY id DESC
    LIMIT :step
);

-- name: list_finished_keyed
-- The next finished jobs that have a key: the few that job_key names.
-- include: finished_matches
    WHERE id IN (SELECT job_id FROM job_key WHERE job_key.key = :key) AND +id < :cursor
    ORDER BY id DESC
    LIMIT :step
);

-- name: list_unfinished_children
-- The next of a job's unfinished children, found in the index of children.
-- include: unfinished_matches
    WHERE parent = :parent AND +id < :cursor
    ORDER BY id DESC
    LIMIT :step
);

-- name: list_finished_children
-- The next of a job's finished children, walking the index of children from the cursor down.
-- include: finished_matches
    WHERE parent = :parent AND id < :cursor
    ORDER BY id DESC
    LIMIT :step
);

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
WHERE (? IS NULL OR lane.queue = ?) AND (? IS NULL OR lane.lane = ?)
  AND (lane.used > 0 OR line.waiting > 0)
ORDER BY waiting DESC, lane.queue, lane.lane
LIMIT ?;

-- name: lane_holders
-- The jobs that hold a place in some lanes: ready, running, and retries that keep their place; by
-- priority, then arrival. The few that run are looked through once. Each ? is the same JSON array of [queue, lane].
SELECT queue, lane, id FROM (
    SELECT job.queue, job.lane, job.id, job.priority, job.seq
    FROM json_each(?) AS place
    CROSS JOIN job ON job.queue = json_extract(place.value, '$[0]')
                  AND job.lane = json_extract(place.value, '$[1]')
    WHERE job.state = 2 AND job.pinned = 0 AND job.lane IS NOT NULL
    UNION
    SELECT job.queue, job.lane, job.id, job.priority, job.seq
    FROM json_each(?) AS place
    CROSS JOIN job ON job.queue = json_extract(place.value, '$[0]')
                  AND job.lane = json_extract(place.value, '$[1]')
    WHERE job.pinned = 1
    UNION
    SELECT queue, lane, id, priority, seq FROM job
    WHERE state = 3 AND (+queue, +lane) IN (
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
    )
)
ORDER BY priority DESC, seq;
