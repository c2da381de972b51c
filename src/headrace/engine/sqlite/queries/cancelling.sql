-- Running jobs that somebody wants cancelled. INDEXED BY, because statistics of an index that is
-- nearly always empty lead the planner to walk over all that run.
SELECT id, token FROM job INDEXED BY job_cancelling WHERE state = 3 AND cancel_reason IS NOT NULL;
