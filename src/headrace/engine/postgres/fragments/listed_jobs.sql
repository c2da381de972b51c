-- Of a walk along ids: how far it has come, and whether the job has a state that was asked for.
-- Whether all else fits, too, follows (job_fits).
SELECT e.id, row_number() OVER (ORDER BY e.id DESC) AS walked,
    p_states IS NULL OR e.state = ANY (p_states) AS asked,
