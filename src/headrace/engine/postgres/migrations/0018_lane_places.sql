-- Whoever clears a lane looks for all that hold a place in it. The index of ready jobs of a lane (job_head)
-- leaves out those that keep their place for a retry; this one has them as well, in every state, so
-- no transition of others has one more index to touch. Running ones that never kept it are found
-- by their worker.
-- Older programs go on working: what they look for is in this index, too. In a transaction of its own:
-- nobody can use jobs until it is committed.
DROP INDEX job_head;
CREATE INDEX job_place ON job (lane, queue, priority, seq DESC)
    WHERE lane IS NOT NULL AND (state = 2 OR pinned);
