-- Progress and entries of running attempts.

-- name: note
-- What a running attempt tells about itself. The token is the guard: of an attempt that lost its
-- job, nothing is written.
UPDATE job SET
    stage = coalesce(?, stage), progress = coalesce(?, progress), message = coalesce(?, message)
WHERE id = ? AND token = ? AND +state = 3;

-- name: entry_write
-- Keep something with a job, or replace what has its name; it keeps its number, so its order.
-- Runs only after note.sql has accepted the token.
INSERT INTO entry (job_id, kind, name, body, token, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id, kind, name)
DO UPDATE SET body = excluded.body, token = excluded.token, at = excluded.at;

-- name: entries
-- What was kept with a job, in the order of the first write. A kind of NULL means every kind.
SELECT kind, name, body, token, at FROM entry
WHERE job_id = ? AND (? IS NULL OR kind = ?)
ORDER BY number;
