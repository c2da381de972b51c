-- Keep something with a job, or replace what has its name; it keeps its number, so its order.
-- Runs only after note.sql has accepted the token.
INSERT INTO entry (job_id, kind, name, body, token, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (job_id, kind, name)
DO UPDATE SET body = excluded.body, token = excluded.token, at = excluded.at;
