-- Jobs that have to start by a time: `at`. A table of its own, so that the other jobs do not carry it
-- along. `look_at` is when `expire` looks at the job: at that time, or later while it runs in its first
-- attempt, since it may yet be given back unstarted. The row goes when the job has started or ended.
-- Older programs go on working: they store no such times, and read of a view only as many columns as
-- they know. They may claim a job that has expired, if no newer program was there to cancel it. What
-- they leave here of jobs that they ended is found when its time comes. Where a job has taken the key of
-- another (`insert_by_policy`), their doctor says that key and job do not belong together.
CREATE TABLE expiry (
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    look_at REAL NOT NULL
);
CREATE INDEX expiry_look ON expiry (look_at);

-- As before, with the new column behind the others: shown until the job has started or ended.
DROP VIEW unfinished_job;
CREATE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, NULL AS completed_at,
       coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker) AS worker,
       error_type, error, NULL AS result,
       cancel_reason IS NOT NULL AS cancel_requested, meta, log, parent, group_name,
       (SELECT awaits FROM suspended WHERE suspended.seq = job.seq) AS awaits, admitted_at,
       CASE WHEN state <> 3 AND attempt = 0
            THEN (SELECT at FROM expiry WHERE expiry.seq = job.seq) END AS expires_at
FROM job;

DROP VIEW finished_job;
CREATE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, completed_at, worker, error_type, error, result,
       cancel_requested, meta, log, parent, group_name, NULL AS awaits, admitted_at,
       NULL AS expires_at
FROM history;
