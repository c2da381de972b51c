-- Jobs that have to start by a time.

-- name: expiry_set
-- A job has to start by ?2, and is looked at then (?3 is the same).
INSERT INTO expiry (seq, at, look_at) VALUES (?, ?, ?)
ON CONFLICT (seq) DO UPDATE SET at = excluded.at, look_at = excluded.look_at;

-- name: expiry_forget
-- Jobs that have started or ended do not expire any more.
DELETE FROM expiry WHERE seq IN (SELECT value FROM json_each(?));

-- name: expiry_resume
-- Jobs that were given back unstarted are looked at when their time comes, or at once.
UPDATE expiry SET look_at = at
WHERE seq IN (SELECT value FROM json_each(?)) AND look_at > at;

-- name: expiry_put_off
-- Look at jobs that run later: they may be given back unstarted.
UPDATE expiry SET look_at = ? WHERE seq IN (SELECT value FROM json_each(?));

-- name: expiry_due
-- The jobs whose time to start is over, the earliest first: what has become of each, in the columns of
-- cancel_look, and its attempt. All are NULL but `seq` if it has ended.
SELECT job.id, due.seq, job.state, job.queue, job.lane, job.pinned, job.attempt
FROM (SELECT seq FROM expiry WHERE look_at <= ? ORDER BY look_at, seq LIMIT ?) AS due
LEFT JOIN job ON job.seq = due.seq;

-- name: expiry_next
-- When the next job is to be looked at: the first entry of the index expiry_look.
SELECT min(look_at) FROM expiry;
