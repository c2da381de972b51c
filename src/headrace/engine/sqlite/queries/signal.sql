-- Keep an event with its job, unless one of its name is there.
INSERT INTO entry (job_id, kind, name, body, token, at) VALUES (?1, 'event', ?2, ?3, ?4, ?5)
ON CONFLICT (job_id, kind, name) DO NOTHING;
