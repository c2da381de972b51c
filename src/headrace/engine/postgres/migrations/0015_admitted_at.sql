-- When a job got the place in its lane for which it had waited; NULL: it has not waited, or an older
-- program gave it the place. No index: a job would have to be entered anew into all of them.
-- Older programs go on working: they name the columns that they write, and what they read by `*` are
-- the views, which have the new column last in all three.
ALTER TABLE job ADD COLUMN admitted_at timestamptz;
ALTER TABLE history ADD COLUMN admitted_at timestamptz;

CREATE OR REPLACE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, NULL::timestamptz AS completed_at, worker, error_type, error,
    NULL::bytea AS result, cancel_reason, meta, log, parent, child_group, awaits, admitted_at
FROM job;

CREATE OR REPLACE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, completed_at, worker, error_type, error,
    result, cancel_reason, meta, log, parent, child_group, NULL::jsonb AS awaits, admitted_at
FROM history;

CREATE OR REPLACE VIEW every_job AS
SELECT * FROM unfinished_job UNION ALL SELECT * FROM finished_job;

CREATE OR REPLACE VIEW jobs AS
SELECT id, task, queue,
    (ARRAY['scheduled', 'pending', 'pending', 'running', 'completed', 'failed', 'timeout',
           'cancelled'])[state + 1] AS status,
    state = 1 AS waits_for_lane, lane, priority, attempt, max_attempts, stage, progress, message,
    worker, created_at, run_at, started_at, completed_at, error_type, error,
    cancel_reason IS NOT NULL AS cancel_requested, key, source, token,
    convert_from(args, 'UTF8') AS args, convert_from(result, 'UTF8') AS result,
    convert_from(meta, 'UTF8') AS meta, parent, child_group, awaits, admitted_at
FROM every_job;
