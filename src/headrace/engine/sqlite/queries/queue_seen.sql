-- Remember that a queue has been used, and when, to the hour: no write for each job.
INSERT INTO queue (name, used_at) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET used_at = excluded.used_at
WHERE abs(used_at - excluded.used_at) > 3600;
