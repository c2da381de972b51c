-- By when jobs have to start that have such a time: `expire` cancels those that have not. Beside the jobs,
-- so that others cost nothing. The entry of a job that has started stays until its time, or until the
-- job is pruned: it may be given back unstarted. `running` marks one whose job ran when its time came;
-- nobody looks at it any more, unless the job is given back.
-- Older programs go on working. They do not cancel such jobs, and claim them although their time is over;
-- one that they snooze, suspend or run again after its end may be cancelled when its time comes.
CREATE TABLE expiry (
    at timestamptz NOT NULL,
    job_id uuid PRIMARY KEY,
    running boolean NOT NULL DEFAULT false
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX expiry_at ON expiry (at) WHERE NOT running;

-- For people. What programs show they look up themselves.
CREATE OR REPLACE VIEW jobs AS
SELECT id, task, queue,
    (ARRAY['scheduled', 'pending', 'pending', 'running', 'completed', 'failed', 'timeout',
           'cancelled'])[state + 1] AS status,
    state = 1 AS waits_for_lane, lane, priority, attempt, max_attempts, stage, progress, message,
    worker, created_at, run_at, started_at, completed_at, error_type, error,
    cancel_reason IS NOT NULL AS cancel_requested, key, source, token,
    convert_from(args, 'UTF8') AS args, convert_from(result, 'UTF8') AS result,
    convert_from(meta, 'UTF8') AS meta, parent, child_group, awaits, admitted_at,
    CASE WHEN state < 3 AND attempt = 0 THEN
        (SELECT x.at FROM expiry x WHERE x.job_id = every_job.id)
    END AS expires_at
FROM every_job;
