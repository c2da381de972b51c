-- Rates of lanes and queues. `lane` '' is the queue itself. `count` starts in `per` seconds, up to
-- `burst` at once: what the newest job says, and `set_…` what an operator says, which counts first.
-- `tat` is when all that has started is paid for, and `counted_at` when the last start was counted: by it
-- a clock that went back is found out. Nothing starts before `held_until`. The `line_…` are of the last
-- parked job: its time, when all is paid for after it, its priority and its seq. A row may go when its
-- times have passed, nobody has set it, and no unfinished job has a rate of it or was parked by it.
-- Older programs go on working: they name the columns that they write, and read of a view only as many
-- columns as they know. They start jobs without looking at rates, and a parked job that they start
-- keeps its place for a retry, whether or not it was to.
CREATE TABLE rate (
    queue TEXT NOT NULL,
    lane TEXT NOT NULL,
    count REAL,
    per REAL,
    burst INTEGER,
    set_count REAL,
    set_per REAL,
    set_burst INTEGER,
    tat REAL NOT NULL DEFAULT 0,
    counted_at REAL NOT NULL DEFAULT 0,
    held_until REAL NOT NULL DEFAULT 0,
    line_at REAL NOT NULL DEFAULT 0,
    line_tat REAL NOT NULL DEFAULT 0,
    line_priority INTEGER NOT NULL DEFAULT 0,
    line_seq INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, lane)
) WITHOUT ROWID;

-- What a job says of the rate of its lane, as JSON: count, per, burst, its cost, and whether its
-- retries count; NULL: nothing.
ALTER TABLE job ADD COLUMN rate TEXT;
ALTER TABLE history ADD COLUMN rate TEXT;
CREATE INDEX job_rated ON job (queue, lane) WHERE rate IS NOT NULL;

-- A job that had to wait for its lane's rate, until it is claimed: its `hold` plus twice its `pinned`
-- from before. It is pinned meanwhile. NULL: it had not.
ALTER TABLE job ADD COLUMN parked INTEGER;
CREATE INDEX job_parked ON job (run_at, queue) WHERE state = 0 AND parked IS NOT NULL;
CREATE INDEX job_parked_line ON job (queue, lane, priority DESC, seq)
WHERE state = 0 AND parked IS NOT NULL;

-- As before, with the new column behind the others.
DROP VIEW unfinished_job;
CREATE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, coalesce(parked & 1, hold) AS hold, key,
       source, attempt, max_attempts, token, timeout, on_crash, stage, progress, message, created_at,
       run_at, started_at, NULL AS completed_at,
       coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker) AS worker,
       error_type, error, NULL AS result,
       cancel_reason IS NOT NULL AS cancel_requested, meta, log, parent, group_name,
       (SELECT awaits FROM suspended WHERE suspended.seq = job.seq) AS awaits, admitted_at,
       CASE WHEN state <> 3 AND attempt = 0
            THEN (SELECT at FROM expiry WHERE expiry.seq = job.seq) END AS expires_at,
       state = 0 AND parked IS NOT NULL AS parked
FROM job;

DROP VIEW finished_job;
CREATE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, completed_at, worker, error_type, error, result,
       cancel_requested, meta, log, parent, group_name, NULL AS awaits, admitted_at,
       NULL AS expires_at, 0 AS parked
FROM history;
