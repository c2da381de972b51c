-- Recording how attempts ended.

-- name: settle_look
-- The running jobs that outcomes have come in for, as one JSON text: a row each would hand Python's
-- global lock back and forth for every one of them. Found by id, one step each: CROSS JOIN keeps the
-- order of the join, and +state keeps the planner off an index over states. The caller compares the
-- token. And whether any job has to start by a time: if none has, there is nothing to forget of these.
SELECT CAST(json_group_array(json_array(
    job.id, job.seq, job.token, job.queue, job.lane, job.width, job.hold, job.pinned,
    job.cancel_reason, job.task
)) AS BLOB), EXISTS (SELECT 1 FROM expiry)
FROM json_each(?) AS asked
CROSS JOIN job ON job.id = asked.value
WHERE +job.state = 3;

-- name: complete
-- Copy completed jobs to history, all in one statement: that is several times cheaper than one each.
-- ?2 is a JSON object of seq and result. finish_remove.sql follows in the same transaction; the
-- caller has checked state and token there.
-- include: into_history
SELECT
    job.id, 4, token, attempt,
    coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker),
    started_at, ?, cancel_reason IS NOT NULL, priority, queue,
    lane, width, hold, run_at, created_at, task, job.key, max_attempts, timeout, on_crash, source,
    100, stage, CASE WHEN progress >= 100 THEN message END, NULL, NULL,
    CAST(done.value AS BLOB), args, meta, log,
    job.parent, job.group_name, admitted_at, rate
FROM json_each(?) AS done
CROSS JOIN job ON job.seq = CAST(done.key AS INTEGER);

-- name: finish
-- Copy one finished job to history, however it ended; finish_remove.sql follows in the same
-- transaction. The caller has checked state and token there. The log keeps its newest 262144
-- bytes.
WITH outcome (state, completed_at, error_type, error, result, entry, seq) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?)
)
-- include: into_history
SELECT
    job.id, outcome.state, token, attempt,
    coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker),
    started_at, outcome.completed_at, cancel_reason IS NOT NULL, priority, queue,
    lane, width, coalesce(parked & 1, hold), run_at, created_at, task, key, max_attempts, timeout, on_crash, source,
    CASE outcome.state WHEN 4 THEN 100 ELSE progress END, stage,
    CASE WHEN outcome.state <> 4 OR progress >= 100 THEN message END,
    outcome.error_type, outcome.error, outcome.result, args, meta,
    coalesce(substr(CAST(log || outcome.entry || x'0a' AS BLOB), -262144), log),
    parent, group_name, admitted_at, rate
FROM outcome CROSS JOIN job ON job.seq = outcome.seq;

-- name: finish_remove
-- Take finished jobs out of the hot table, right after they were copied to history.
DELETE FROM job WHERE seq IN (SELECT value FROM json_each(?));

-- name: requeue
-- Give a running job another turn: later (0), in its lane (1) or now (2). Whether the attempt is
-- given back, whether it is reserved and whether the place is kept were decided under the write lock, as was the token.
UPDATE job SET
    state = ?, pinned = ?, reserved = ?, attempt = attempt - ?, run_at = coalesce(?, run_at),
    error_type = coalesce(?, error_type), error = coalesce(?, error),
    log = coalesce(substr(CAST(log || ? || x'0a' AS BLOB), -262144), log),
    worker = NULL, started_at = NULL
WHERE seq = ?;

-- name: reserve_next
-- Reserve jobs of some tasks among those that are next in line of a queue. Bounded: whoever meets
-- more of them goes on from there.
UPDATE job SET reserved = 1
WHERE seq IN (
    SELECT seq FROM (
        SELECT seq, task FROM job
        WHERE queue = ? AND state = 2 AND reserved = 0
        ORDER BY priority DESC, seq
        LIMIT 500
    )
    WHERE task IN (SELECT value FROM json_each(?))
);

-- name: reserved_exists
-- Whether there are reserved jobs of one queue and task.
SELECT EXISTS (SELECT 1 FROM job WHERE queue = ? AND task = ? AND state = 2 AND reserved = 1);

-- name: workers_offer_anew
-- There are reserved jobs of another queue or task: every worker has to find out if they are for it.
UPDATE worker SET offered = NULL WHERE offered IS NOT NULL;

-- name: suspend
-- What a job waits for that requeue.sql has just made scheduled.
INSERT INTO suspended (seq, id, awaits) VALUES (?, ?, ?);
