-- Stop or resume handing out a queue's jobs; resuming is told to all workers.
WITH changed AS (
    INSERT INTO queue (name, used_at, paused)
    VALUES ($2, clock_timestamp() + $1::double precision * interval '1 second', $3)
    ON CONFLICT (name) DO UPDATE SET paused = EXCLUDED.paused, used_at = EXCLUDED.used_at
    RETURNING paused
)
SELECT CASE WHEN NOT paused THEN pg_notify(current_schema(), 'work') END FROM changed
