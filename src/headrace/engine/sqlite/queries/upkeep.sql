-- Due and suspended jobs, and deleting what finished long ago.

-- name: prune_job
-- Delete one finished job; its entries and its key follow in the same transaction.
DELETE FROM history WHERE number = ?;

-- name: prune_old
-- Finished jobs from number ?1 on, the oldest first: numbers grow with the time of finishing, so no
-- index on time is needed. Read as far as there is something to prune.
SELECT number, id, completed_at, parent FROM history WHERE number >= ? ORDER BY number;

-- name: prune_again
-- Those of the jobs that prune_old.sql has found which may still go: in the meantime one may have run
-- again, and so may its parent. ?1 is a JSON array of [number, id].
SELECT history.number, history.id, history.key, history.task
FROM json_each(?) AS asked
CROSS JOIN history ON history.number = json_extract(asked.value, '$[0]')
WHERE +history.id = json_extract(asked.value, '$[1]')
  AND (history.parent IS NULL OR NOT EXISTS (SELECT 1 FROM job WHERE job.id = history.parent));

-- name: prune_artifacts
-- Leave word of pruned jobs that kept artifacts, so that somebody removes the files.
INSERT INTO record (kind, key, version, body, updated_at)
SELECT 'pruned-artifacts', asked.value, 1, CAST('{}' AS BLOB), ? FROM json_each(?) AS asked
WHERE EXISTS (SELECT 1 FROM entry WHERE entry.job_id = asked.value AND entry.kind = 'artifact')
ON CONFLICT (kind, key) DO UPDATE SET version = version + 1, updated_at = excluded.updated_at;

-- name: prune_entries
-- Delete what was kept with a pruned job.
DELETE FROM entry WHERE job_id = ?;

-- name: prune_key
-- Free a pruned job's key, if it is that job's.
DELETE FROM job_key WHERE key = ? AND task = ? AND job_id = ?;

-- name: prune_workers
-- Forget workers that died long ago, unless a job of theirs has not been taken over yet.
DELETE FROM worker
WHERE died_at < ?
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.worker = worker.id AND job.state = 3);

-- name: history_count
-- How many finished jobs there are, counted in the smallest index.
SELECT count(*) FROM history;

-- name: history_at
-- When a job finished: the first one from number ?1 on.
SELECT number, completed_at FROM history WHERE number >= ? ORDER BY number LIMIT 1;

-- name: prune_parent
-- A finished parent of a job that may go.
SELECT number, completed_at, parent FROM history WHERE id = ?;

-- name: unfinished
-- Whether a job has not finished.
SELECT 1 FROM job WHERE id = ?;

-- name: history_beyond
-- The number of the ?1-th finished job from the oldest, which is the 0th. Steps over those that are
-- beyond what is kept, and are about to go.
SELECT number FROM history WHERE number >= 0 ORDER BY number LIMIT 1 OFFSET ?;

-- name: history_last
-- The number of the job that finished last: one step into the table.
SELECT max(number) FROM history;

-- name: queues_unused
-- Queues that were used last before ?3, are not paused, and have nothing ready or waiting: those behind
-- ?1 and ?2, in the order of that time. Those that have scheduled or running jobs may be forgotten as
-- well: a job that is there shows its queue.
SELECT used_at, name FROM queue
WHERE (used_at, name) > (?, ?) AND paused = 0 AND used_at < ?
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 2 AND reserved = 0)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 2 AND reserved = 1)
  AND NOT EXISTS (SELECT 1 FROM job WHERE job.queue = queue.name AND job.state = 1)
ORDER BY used_at, name LIMIT ?;

-- name: queue_forget
-- Forget a queue that queues_unused.sql has found, unless it was used or paused since. Always safe:
-- claims look for jobs, not for queues.
DELETE FROM queue WHERE name = ? AND paused = 0 AND used_at NOT BETWEEN ? AND ?;

-- name: due
-- Scheduled jobs whose time has come, the longest due first.
SELECT seq, queue, lane, width, pinned, token FROM job
WHERE state = 0 AND run_at <= ?
ORDER BY run_at, seq
LIMIT ?;

-- name: due_move
-- Make a scheduled job ready (2), or let it wait in its lane (1) until it is admitted.
UPDATE job SET state = ? WHERE seq = ?;

-- name: due_next
-- When the next scheduled job is due: the first entry of the index job_due.
SELECT min(run_at) FROM job WHERE state = 0;

-- name: due_at
-- A scheduled job is due at another time.
UPDATE job SET run_at = ? WHERE seq = ?;

-- name: suspend_end
-- Jobs that are not scheduled any more wait for nothing.
DELETE FROM suspended WHERE seq IN (SELECT value FROM json_each(?));

-- name: suspended
-- Ids of suspended jobs after one of them.
SELECT id FROM suspended WHERE id > ? ORDER BY id LIMIT ?;

-- name: wake_look
-- The suspended jobs among those that somebody wants woken, in the columns of due.sql.
SELECT job.seq, job.queue, job.lane, job.width, job.pinned, job.token, job.id, suspended.awaits
FROM json_each(?) AS asked
CROSS JOIN suspended ON suspended.id = asked.value
CROSS JOIN job ON job.seq = suspended.seq
ORDER BY asked.key;

-- name: wake_event
-- Whether an event of this name was delivered to a job.
SELECT 1 FROM entry WHERE job_id = ? AND kind = 'event' AND name = ?;

-- name: wake_children
-- Whether more than ?2 children of a job are unfinished: one step into the index for each up to that
-- many, however many more there are.
SELECT 1 FROM job WHERE parent = ? LIMIT 1 OFFSET ?;

-- name: wake_group
-- Whether more than ?3 children of a job in one group are unfinished, as in wake_children.sql.
SELECT 1 FROM job WHERE parent = ? AND group_name = ? LIMIT 1 OFFSET ?;

-- name: signal_look
-- Whom an event is for: its token if it is unfinished, and whether it is finished.
SELECT (SELECT token FROM job WHERE id = ?), EXISTS (SELECT 1 FROM history WHERE id = ?);

-- name: signal
-- Keep an event with its job, unless one of its name is there.
INSERT INTO entry (job_id, kind, name, body, token, at) VALUES (?, 'event', ?, ?, ?, ?)
ON CONFLICT (job_id, kind, name) DO NOTHING;
