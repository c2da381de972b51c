-- Pause or resume a queue, known or not.
INSERT INTO queue (name, paused) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET
    resumed = resumed + (paused AND NOT excluded.paused), paused = excluded.paused;
