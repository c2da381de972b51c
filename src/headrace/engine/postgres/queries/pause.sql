-- Stop or resume handing out a queue's jobs; resuming is told to all workers.
WITH changed AS (
    INSERT INTO queue (name, paused) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET paused = EXCLUDED.paused
    RETURNING paused
)
SELECT CASE WHEN NOT paused THEN pg_notify(current_schema(), 'work') END FROM changed
