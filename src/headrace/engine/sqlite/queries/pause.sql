-- Pause or resume a queue, known or not.
INSERT INTO queue (name, paused, used_at) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET
    resumed = resumed + (paused AND NOT excluded.paused), paused = excluded.paused,
    used_at = excluded.used_at;
