-- What a listener asks after another process has committed.

-- name: ready_exists
-- Whether any job may run now. One step into each of the indexes job_ready and job_reserved.
SELECT EXISTS (SELECT 1 FROM job WHERE state = 2 AND reserved = 0)
    OR EXISTS (SELECT 1 FROM job WHERE state = 2 AND reserved = 1);

-- name: cancelling
-- Running jobs that somebody wants cancelled. INDEXED BY, because statistics of an index that is
-- nearly always empty lead the planner to walk over all that run.
SELECT id, token FROM job INDEXED BY job_cancelling WHERE state = 3 AND cancel_reason IS NOT NULL;

-- name: resumed
-- How often any queue has been resumed: another number than last time means that jobs may run again.
-- From the index queue_resumed alone, which has few.
SELECT total(resumed) FROM queue WHERE resumed > 0;
