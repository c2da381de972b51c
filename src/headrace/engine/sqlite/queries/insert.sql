-- Taking jobs in.

-- name: insert
-- Store one new job. Its state was decided under the write lock, from its time and its lane. An
-- empty lane, key or meta is none.
INSERT INTO job (
    seq, id, state, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta
) VALUES (
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''),
    ?, ?, ?, ?, ?, nullif(?, '')
);

-- name: insert_sixteen
-- Store sixteen new jobs, as insert does one. A statement that begins opens every index of the table:
-- for one row that is a third of the work.
INSERT INTO job (
    seq, id, state, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta
) VALUES (
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''),
    ?, ?, ?, ?, ?, nullif(?, '')
)
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
-- include: another_job
;

-- name: insert_child
-- Store one new job that another has made; as insert.sql, which is for the many that have no parent.
INSERT INTO job (
    seq, id, state, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta, parent, group_name
) VALUES (
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''),
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?
);

-- name: known_ids
-- Which of these ids exist already, so that a repeated insert stores nothing twice.
SELECT asked.value FROM json_each(?) AS asked
WHERE EXISTS (SELECT 1 FROM job WHERE job.id = asked.value)
   OR EXISTS (SELECT 1 FROM history WHERE history.id = asked.value);

-- name: key_take
-- Take an idempotency key, unless it is taken. The primary key decides.
INSERT INTO job_key (key, task, job_id) VALUES (?, ?, ?)
ON CONFLICT (key, task) DO NOTHING;

-- name: key_owner
-- The job that has an idempotency key.
SELECT job_id FROM job_key WHERE key = ? AND task = ?;

-- name: queue_seen
-- Remember that a queue has been used, and when, to the hour: no write for each job.
INSERT INTO queue (name, used_at) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET used_at = excluded.used_at
WHERE abs(used_at - excluded.used_at) > 3600;

-- name: arrive
-- Take the next numbers of arrival. One row under the write lock, so no number is given out twice,
-- not even after the job that had it was deleted.
UPDATE arrival SET seq = seq + ? WHERE one = 1 RETURNING seq;
