-- Leasing ready jobs to workers.

-- name: claim
-- Lease chosen ready jobs to one worker. The caller chose them in the same transaction. Token and
-- attempt grow with every claim, so an earlier attempt's writes are told apart and refused.
UPDATE job SET state = 3, reserved = 0, token = token + 1, attempt = attempt + 1, worker = ?,
    started_at = ?
WHERE seq IN (SELECT value FROM json_each(?));

-- name: claimable
-- The ready jobs of one queue with the token and attempt that a claim will give them, as one JSON
-- text: a row each would hand Python's global lock back and forth for every one of them. Arguments
-- and meta of more than ?1 bytes (and ?2, which is the same) are left out; claimable_large.sql has them.
-- One queue by equality: the index job_ready is in this order only within a queue.
SELECT CAST(json_group_array(json_array(
    id, token + 1, attempt + 1, task, queue,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ? THEN CAST(args AS TEXT) END,
    max_attempts, timeout, on_crash, priority, lane, key,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ? THEN CAST(meta AS TEXT) END,
    max(? - run_at, 0.0), cancel_reason, parent, seq
)) AS BLOB)
FROM (
    SELECT * FROM job
    WHERE queue = ? AND state = 2 AND reserved = 0
    ORDER BY priority DESC, seq
    LIMIT ?
);

-- name: claimable_keys
-- The places in line of one queue's ready jobs, best first, from the index alone. For choosing over
-- several queues: read only as far as needed.
SELECT priority, seq FROM job
WHERE queue = ? AND state = 2 AND reserved = 0
ORDER BY priority DESC, seq
LIMIT ?;

-- name: claimable_keys_in_time
-- As claimable_keys, without the jobs whose time to start is over. For the rare claim that finds more of
-- those than it cancels.
SELECT priority, seq FROM job
WHERE queue = ? AND state = 2 AND reserved = 0
  AND NOT EXISTS (SELECT 1 FROM expiry WHERE expiry.seq = job.seq AND expiry.at <= ?)
ORDER BY priority DESC, seq
LIMIT ?;

-- name: claimable_chosen
-- Ready jobs that were chosen over several queues, as claimable.sql has them.
SELECT CAST(json_group_array(json_array(
    job.id, token + 1, attempt + 1, task, queue,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ? THEN CAST(args AS TEXT) END,
    max_attempts, timeout, on_crash, priority, lane, job.key,
    CASE WHEN length(args) + coalesce(length(meta), 0) <= ? THEN CAST(meta AS TEXT) END,
    max(? - run_at, 0.0), cancel_reason, job.parent, seq
)) AS BLOB)
FROM json_each(?) AS chosen
CROSS JOIN job ON job.seq = chosen.value;

-- name: claimable_large
-- Arguments and meta of jobs, byte by byte as they were handed in.
SELECT job.seq, job.args, job.meta
FROM json_each(?) AS chosen
CROSS JOIN job ON job.seq = chosen.value;

-- name: reserved_lines
-- Queues and tasks of reserved jobs whose task a worker knows. One step into the index job_reserved
-- leads from each to the next, however many jobs there are.
WITH RECURSIVE line (queue, task) AS (
    SELECT * FROM (
        SELECT queue, task FROM job WHERE state = 2 AND reserved = 1 ORDER BY queue, task LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.task
    FROM line, job AS next
    WHERE next.seq = coalesce(
        (SELECT seq FROM job
         WHERE state = 2 AND reserved = 1 AND queue = line.queue AND task > line.task
         ORDER BY task LIMIT 1),
        (SELECT seq FROM job
         WHERE state = 2 AND reserved = 1 AND queue > line.queue
         ORDER BY queue, task LIMIT 1)
    )
)
SELECT line.queue, line.task
FROM line, worker
WHERE worker.id = ?
    AND (worker.tasks IS NULL OR line.task IN (SELECT value FROM json_each(worker.tasks)));

-- name: reserved_keys
-- The places in line of reserved jobs of one queue and task, as claimable_keys.sql has them.
SELECT priority, seq FROM job
WHERE queue = ? AND task = ? AND state = 2 AND reserved = 1
ORDER BY priority DESC, seq
LIMIT ?;

-- name: reserved_keys_in_time
-- As reserved_keys, without the jobs whose time to start is over.
SELECT priority, seq FROM job
WHERE queue = ? AND task = ? AND state = 2 AND reserved = 1
  AND NOT EXISTS (SELECT 1 FROM expiry WHERE expiry.seq = job.seq AND expiry.at <= ?)
ORDER BY priority DESC, seq
LIMIT ?;

-- name: worker_alive
-- Whether a worker may be given jobs: known, and not declared dead. A lease that has just lapsed is no
-- harm: as long as nobody has declared its worker dead, nobody takes its jobs. Answers which reserved
-- jobs it may claim, NULL if that has to be found out; and when the first job is to be looked at that
-- has to start by a time; and whether there are rates.
SELECT offered, (SELECT min(look_at) FROM expiry), EXISTS (SELECT 1 FROM rate) FROM worker WHERE id = ? AND died_at IS NULL;

-- name: worker_offer
-- A worker may claim reserved jobs of these queues and tasks.
UPDATE worker SET offered = ? WHERE id = ?;

-- name: held
-- The jobs that are leased to one worker, in the order they were claimed.
SELECT id, token, attempt, task, queue, args, max_attempts, timeout, on_crash = 'fail', priority,
       lane, key, meta, max(started_at - run_at, 0.0), cancel_reason IS NOT NULL, parent
FROM job WHERE worker = ? AND state = 3
ORDER BY started_at, priority DESC, seq;

-- name: queues_ready
-- Queues that have ready jobs and are not paused. One step into the index job_ready leads from each to
-- the next, so queues without ready jobs, however many there are, cost nothing.
WITH RECURSIVE ready (name) AS (
    SELECT min(queue) FROM job WHERE state = 2 AND reserved = 0
    UNION ALL
    SELECT (SELECT min(queue) FROM job WHERE state = 2 AND reserved = 0 AND queue > ready.name)
    FROM ready WHERE ready.name IS NOT NULL
)
SELECT name FROM ready
WHERE name IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.name = ready.name AND queue.paused = 1);

-- name: queues_named
-- Those of some queues, a JSON array of names, that are not paused.
SELECT value FROM json_each(?) AS asked
WHERE NOT EXISTS (SELECT 1 FROM queue WHERE queue.name = asked.value AND queue.paused = 1);
