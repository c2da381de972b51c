-- Finding dead workers and unused queues without reading the others.

-- Equal to `died_at`: since it died, the worker holds no job, so that nobody asks again. Not a mere
-- mark: older programs, which do not know this column, may register the worker once more. If it dies
-- again, the times differ.
ALTER TABLE worker ADD COLUMN emptied_of timestamptz;

-- Many may have died today: statements about the living, or about those to be forgotten, do not meet
-- them. A renewal changes no column that is here, so it stays in its page.
CREATE INDEX worker_alive ON worker (name) WHERE died_at IS NULL;
CREATE INDEX worker_died ON worker (died_at) WHERE died_at IS NOT NULL;
CREATE INDEX worker_dead ON worker (number)
    WHERE died_at IS NOT NULL AND emptied_of IS DISTINCT FROM died_at;

-- There may be many that were used today: those that may be forgotten are found without them.
CREATE INDEX queue_used ON queue (used_at) WHERE NOT paused;
