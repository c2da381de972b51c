-- Jobs that were made by other jobs, and jobs that wait for something. `parent` is the id of the job
-- that made this one, `group_name` its name for those that it waits for together. `awaits` is what a
-- suspended job waits for, as JSON: it is scheduled, and due sooner if one of these comes about.
-- A job without these costs nothing: the indexes hold only jobs that have them.

ALTER TABLE job ADD COLUMN parent TEXT;
ALTER TABLE job ADD COLUMN group_name TEXT CHECK (group_name IS NULL OR parent IS NOT NULL);
ALTER TABLE job ADD COLUMN awaits TEXT CHECK (awaits IS NULL OR state = 0);
ALTER TABLE history ADD COLUMN parent TEXT;
ALTER TABLE history ADD COLUMN group_name TEXT CHECK (group_name IS NULL OR parent IS NOT NULL);

-- Children are listed by id, and the unfinished ones of a group are counted.
CREATE INDEX job_child ON job (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX job_child_group ON job (parent, group_name) WHERE parent IS NOT NULL;
CREATE INDEX history_child ON history (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX job_suspended ON job (id) WHERE awaits IS NOT NULL;

DROP VIEW unfinished_job;
CREATE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, NULL AS completed_at,
       coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker) AS worker,
       error_type, error, NULL AS result,
       cancel_reason IS NOT NULL AS cancel_requested, meta, log, parent, group_name, awaits
FROM job;

DROP VIEW finished_job;
CREATE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, completed_at, worker, error_type, error, result,
       cancel_requested, meta, log, parent, group_name, NULL AS awaits
FROM history;

PRAGMA user_version = 2;
