-- Finding dead workers and unused queues without reading the others.

-- Many may have died today: statements about the living, or about those to be forgotten, do not meet
-- them.
CREATE INDEX worker_alive ON worker (name) WHERE died_at IS NULL;
CREATE INDEX worker_died ON worker (died_at) WHERE died_at IS NOT NULL;

-- There may be many that were used today: those that may be forgotten are found without them.
CREATE INDEX queue_used ON queue (used_at, name) WHERE paused = 0;

-- The queues and tasks of reserved jobs that a worker may claim, as JSON: every such line that has
-- jobs; NULL: to be found out.
ALTER TABLE worker ADD COLUMN offered TEXT;
