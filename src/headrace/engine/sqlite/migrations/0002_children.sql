-- Jobs that were made by other jobs, and jobs that wait for something. The cost is theirs: a job
-- without parent is in no index more, and what a job waits for is in a table of its own.

-- `parent` is the id of the job that made this one, `group_name` its name for those that it waits
-- for together.
ALTER TABLE job ADD COLUMN parent TEXT;
ALTER TABLE job ADD COLUMN group_name TEXT CHECK (group_name IS NULL OR parent IS NOT NULL);
ALTER TABLE history ADD COLUMN parent TEXT;
ALTER TABLE history ADD COLUMN group_name TEXT;

-- The unfinished children of a group are counted, finished ones are listed in the order of ids.
CREATE INDEX job_child ON job (parent, group_name, id) WHERE parent IS NOT NULL;
CREATE INDEX history_child ON history (parent, id) WHERE parent IS NOT NULL;

-- Scheduled jobs that are due sooner if something comes about; `awaits` tells what, as JSON.
CREATE TABLE suspended (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    awaits TEXT NOT NULL
);

DROP VIEW unfinished_job;
CREATE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, NULL AS completed_at,
       coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker) AS worker,
       error_type, error, NULL AS result,
       cancel_reason IS NOT NULL AS cancel_requested, meta, log, parent, group_name,
       (SELECT awaits FROM suspended WHERE suspended.seq = job.seq) AS awaits
FROM job;

DROP VIEW finished_job;
CREATE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, completed_at, worker, error_type, error, result,
       cancel_requested, meta, log, parent, group_name, NULL AS awaits
FROM history;

PRAGMA user_version = 2;
