-- Taking a job in by its policy.

-- name: key_holder
-- The job that has an idempotency key: when it was stored, and what it is now, in the columns of
-- cancel_look and its token and time. NULL from `seq` on if it has ended.
SELECT coalesce(job.created_at, history.created_at), job_key.job_id, job.seq, job.state, job.queue,
       job.lane, job.pinned, job.width, job.token, job.run_at
FROM job_key
LEFT JOIN job ON job.id = job_key.job_id
LEFT JOIN history ON job.id IS NULL AND history.id = job_key.job_id
WHERE job_key.key = ? AND job_key.task = ?;

-- name: key_move
-- Take an idempotency key, whoever has it.
INSERT INTO job_key (key, task, job_id) VALUES (?, ?, ?)
ON CONFLICT (key, task) DO UPDATE SET job_id = excluded.job_id;

-- name: debounce
-- Give a job that has not started other arguments. Empty meta is none.
UPDATE job SET args = ?, meta = nullif(?, '') WHERE seq = ?;

-- name: lane_waiting
-- All that wait in one lane.
SELECT id FROM job WHERE queue = ? AND lane = ? AND state = 1;
