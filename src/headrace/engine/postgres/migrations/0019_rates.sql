-- Rates of lanes and queues. `lane` '' is the queue itself. `count` starts in `per` seconds, up to
-- `burst` at once: what the newest job says, and `set_…` what an operator says, which counts first. Times
-- are seconds since the epoch. `tat` is when all that has started is paid for, and `counted_at` when the
-- last start was counted: by it a clock that went back is found out. Nothing starts before `held_until`.
-- The `line_…` are of the last parked job: its time, when all is paid for after it, its priority and its
-- seq. A row may go when its times have passed, nobody has set it, no unfinished job has a rate of it or is
-- parked by it, and no caller's transaction has said a rate before `spared_until`, which may be open.
-- Half of each page stays free, so that times change in place.
-- Older programs go on working: they name the columns that they write, and what they read by `*` are the
-- views, which have the new column last in all three. They start jobs without looking at rates, a parked
-- job that they start keeps its place for a retry, whether or not it was to, and one that they finish has
-- no rate if it is run again.
CREATE TABLE rate (
    number bigint GENERATED ALWAYS AS IDENTITY,
    tat double precision NOT NULL DEFAULT 0,
    counted_at double precision NOT NULL DEFAULT 0,
    held_until double precision NOT NULL DEFAULT 0,
    line_at double precision NOT NULL DEFAULT 0,
    line_tat double precision NOT NULL DEFAULT 0,
    line_seq bigint NOT NULL DEFAULT 0,
    spared_until double precision NOT NULL DEFAULT 0,
    count double precision,
    per double precision,
    set_count double precision,
    set_per double precision,
    burst integer,
    set_burst integer,
    line_priority smallint NOT NULL DEFAULT 0,
    queue text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    PRIMARY KEY (lane, queue)
) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0);

-- What jobs of a caller's transaction have said of the rates of their lanes, as job.rate, since it was
-- committed: the next claim keeps it. In theirs, every claim would wait for the key until it ends.
CREATE TABLE said_rate (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    rate double precision[] NOT NULL
);

-- What a job says of the rate of its lane: count, per, burst, its cost, and whether its retries count (1
-- or 0). NULL: nothing.
ALTER TABLE job ADD COLUMN rate double precision[];
ALTER TABLE history ADD COLUMN rate double precision[];
CREATE INDEX job_rated ON job (lane, queue) WHERE rate IS NOT NULL;

-- A job that had to wait for its lane's rate, until it is claimed: its `hold` plus twice its `pinned`
-- from before. It is pinned meanwhile. NULL: it had not.
ALTER TABLE job ADD COLUMN parked smallint;
CREATE INDEX job_parked ON job (run_at) WHERE state = 0 AND parked IS NOT NULL;
CREATE INDEX job_parked_line ON job (lane, queue, priority DESC, seq)
WHERE state = 0 AND parked IS NOT NULL;

CREATE OR REPLACE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width,
    CASE WHEN parked IS NULL THEN hold ELSE parked & 1 = 1 END AS hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, NULL::timestamptz AS completed_at, worker, error_type, error,
    NULL::bytea AS result, cancel_reason, meta, log, parent, child_group, awaits, admitted_at,
    state = 0 AND parked IS NOT NULL AS parked
FROM job;

CREATE OR REPLACE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at, run_at,
    started_at, completed_at, worker, error_type, error,
    result, cancel_reason, meta, log, parent, child_group, NULL::jsonb AS awaits, admitted_at,
    false AS parked
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
    convert_from(meta, 'UTF8') AS meta, parent, child_group, awaits, admitted_at,
    CASE WHEN state < 3 AND attempt = 0 THEN
        (SELECT x.at FROM expiry x WHERE x.job_id = every_job.id)
    END AS expires_at,
    parked
FROM every_job;
