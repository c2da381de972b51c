-- What pages of jobs need.

-- When a job last got a place in its lane for which it had waited; NULL: never.
-- Older programs go on working: they name the columns that they write, and read of a view only as many
-- columns as they know. A job that they admit keeps NULL, or the time before.
ALTER TABLE job ADD COLUMN admitted_at REAL;
ALTER TABLE history ADD COLUMN admitted_at REAL;

-- Lists of jobs by error, and counts of scheduled jobs by queue, are answered from these alone.
DROP INDEX history_unsuccessful;
CREATE INDEX history_unsuccessful ON history (state, id, error_type, task, queue) WHERE state <> 4;
DROP INDEX job_due;
CREATE INDEX job_due ON job (run_at, seq, queue, state) WHERE state = 0;

-- As before, with the new column behind the others.
DROP VIEW unfinished_job;
CREATE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, NULL AS completed_at,
       coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker) AS worker,
       error_type, error, NULL AS result,
       cancel_reason IS NOT NULL AS cancel_requested, meta, log, parent, group_name,
       (SELECT awaits FROM suspended WHERE suspended.seq = job.seq) AS awaits, admitted_at
FROM job;

DROP VIEW finished_job;
CREATE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, completed_at, worker, error_type, error, result,
       cancel_requested, meta, log, parent, group_name, NULL AS awaits, admitted_at
FROM history;
