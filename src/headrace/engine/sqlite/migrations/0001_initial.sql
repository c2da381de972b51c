-- The schema. Times are seconds since the epoch; flags are 0 or 1; states are those of
-- headrace.model.status.State. The CHECKs hold the rules that no code path may break.

PRAGMA application_id = 1212437059;

-- Jobs that have not finished. `seq` is the order of arrival, `worker` the id of the one that runs
-- it. `pinned` marks a retry that keeps its lane place: a job holds a place in its lane while it is
-- ready (2), running (3) or pinned. `cancel_reason` says that a running job should stop.
-- `reserved` marks a ready job that only workers that know its task are offered.
-- `parent` is the id of the job that made this one, `group_name` its name for those that it waits
-- for together.
CREATE TABLE job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    token INTEGER NOT NULL DEFAULT 0 CHECK (token >= 0),
    attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt BETWEEN 0 AND token),
    worker TEXT,
    started_at REAL,
    cancel_reason TEXT,
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    reserved INTEGER NOT NULL DEFAULT 0 CHECK (reserved IN (0, 1)),
    priority INTEGER NOT NULL,
    queue TEXT NOT NULL,
    lane TEXT,
    width INTEGER NOT NULL CHECK (width >= 1),
    hold INTEGER NOT NULL CHECK (hold IN (0, 1)),
    run_at REAL NOT NULL,
    created_at REAL NOT NULL,
    task TEXT NOT NULL,
    key TEXT,
    max_attempts INTEGER NOT NULL,
    timeout REAL,
    on_crash TEXT NOT NULL CHECK (on_crash IN ('retry', 'fail')),
    source TEXT NOT NULL,
    parent TEXT,
    group_name TEXT CHECK (group_name IS NULL OR parent IS NOT NULL),
    progress REAL NOT NULL DEFAULT 0,
    stage TEXT,
    message TEXT,
    error_type TEXT,
    error TEXT,
    args BLOB NOT NULL,
    meta BLOB,
    log BLOB NOT NULL DEFAULT x'',
    CHECK ((state = 3) = (worker IS NOT NULL)),
    CHECK ((state = 3) = (started_at IS NOT NULL)),
    CHECK (state <> 1 OR (lane IS NOT NULL AND pinned = 0)),
    CHECK (reserved = 0 OR state = 2),
    CHECK (pinned = 0 OR (lane IS NOT NULL AND hold = 1))
);

-- Partial indexes: each holds only the rows that one verb looks for, so a transition touches few.
-- `run_at`, `state` and `reserved` are in them so that counting a long line never touches the table.
CREATE INDEX job_ready ON job (queue, priority DESC, seq, run_at, state, reserved)
    WHERE state = 2 AND reserved = 0;
CREATE INDEX job_reserved ON job (queue, task, priority DESC, seq, run_at, state, reserved)
    WHERE state = 2 AND reserved = 1;
CREATE INDEX job_waiting ON job (queue, lane, priority DESC, seq, run_at, state) WHERE state = 1;
CREATE INDEX job_due ON job (run_at) WHERE state = 0;
CREATE INDEX job_running ON job (worker) WHERE state = 3;
CREATE INDEX job_cancelling ON job (worker) WHERE state = 3 AND cancel_reason IS NOT NULL;
-- The ready jobs that a better arrival of their lane may put back, the worst first.
CREATE INDEX job_head ON job (queue, lane, priority, seq DESC)
    WHERE state = 2 AND pinned = 0 AND lane IS NOT NULL;
CREATE INDEX job_pinned ON job (queue, lane) WHERE pinned = 1;
-- The unfinished children of a group are counted, finished ones are listed in the order of ids.
CREATE INDEX job_child ON job (parent, group_name, id) WHERE parent IS NOT NULL;

-- Scheduled jobs that are due sooner if something comes about; `awaits` tells what, as JSON. A
-- table of its own, so that the other jobs do not carry it along.
CREATE TABLE suspended (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    awaits TEXT NOT NULL
);

-- Finished jobs, numbered in the order in which they finished: the order in which they are pruned.
-- `worker` is a name here: a worker's row does not live as long.
CREATE TABLE history (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state INTEGER NOT NULL CHECK (state BETWEEN 4 AND 7),
    token INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT,
    started_at REAL,
    completed_at REAL NOT NULL,
    cancel_requested INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    queue TEXT NOT NULL,
    lane TEXT,
    width INTEGER NOT NULL,
    hold INTEGER NOT NULL,
    run_at REAL NOT NULL,
    created_at REAL NOT NULL,
    task TEXT NOT NULL,
    key TEXT,
    max_attempts INTEGER NOT NULL,
    timeout REAL,
    on_crash TEXT NOT NULL,
    source TEXT NOT NULL,
    parent TEXT,
    group_name TEXT,
    progress REAL NOT NULL,
    stage TEXT,
    message TEXT,
    error_type TEXT,
    error TEXT,
    result BLOB,
    args BLOB NOT NULL,
    meta BLOB,
    log BLOB NOT NULL
);

-- Nearly all jobs complete; the few that did not are found without walking over those.
CREATE INDEX history_unsuccessful ON history (state, id) WHERE state <> 4;
CREATE INDEX history_child ON history (parent, id) WHERE parent IS NOT NULL;

-- Idempotency keys, of jobs in `job` and in `history`. The key comes first: people search by it.
CREATE TABLE job_key (
    key TEXT NOT NULL,
    task TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (key, task)
) WITHOUT ROWID;

-- What attempts keep with their job, numbered in the order of the first write.
CREATE TABLE entry (
    number INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    token INTEGER NOT NULL,
    at REAL NOT NULL,
    UNIQUE (job_id, kind, name)
);

-- Lanes that have holders, or had some lately. No row means: no place is taken.
CREATE TABLE lane (
    queue TEXT NOT NULL,
    lane TEXT NOT NULL,
    width INTEGER NOT NULL CHECK (width >= 1),
    used INTEGER NOT NULL CHECK (used >= 0),
    PRIMARY KEY (queue, lane)
) WITHOUT ROWID;

-- Queues that have been used lately, or are paused; jobs do not need them. `resumed` counts, so that
-- other processes notice. `used_at` is when the last job came in, to the hour.
CREATE TABLE queue (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    resumed INTEGER NOT NULL DEFAULT 0,
    used_at REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX queue_resumed ON queue (resumed) WHERE resumed > 0;

-- Workers. `tasks` are those that it knows, as JSON; NULL: all. `died_at` is set when one retires, is replaced, or lets its lease lapse; it never
-- comes back to life.
CREATE TABLE worker (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    queues TEXT NOT NULL,
    tasks TEXT,
    slots INTEGER NOT NULL,
    running INTEGER NOT NULL DEFAULT 0,
    memory_bytes INTEGER NOT NULL DEFAULT 0,
    cpu_percent REAL NOT NULL DEFAULT 0,
    healthy INTEGER NOT NULL DEFAULT 1,
    started_at REAL NOT NULL,
    heartbeat_at REAL NOT NULL,
    lease_until REAL NOT NULL,
    died_at REAL
) WITHOUT ROWID;

CREATE TABLE record (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    body BLOB NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;

-- One row: the last number of arrival that was given out, so that none is given out twice.
CREATE TABLE arrival (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL
);
INSERT INTO arrival (one, seq) VALUES (1, 0);

-- Jobs as people see them, in the column order of `rows.job`.
CREATE VIEW unfinished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, NULL AS completed_at,
       coalesce((SELECT name FROM worker WHERE worker.id = job.worker), worker) AS worker,
       error_type, error, NULL AS result,
       cancel_reason IS NOT NULL AS cancel_requested, meta, log, parent, group_name,
       (SELECT awaits FROM suspended WHERE suspended.seq = job.seq) AS awaits
FROM job;

CREATE VIEW finished_job AS
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
       max_attempts, token, timeout, on_crash, stage, progress, message, created_at, run_at,
       started_at, completed_at, worker, error_type, error, result,
       cancel_requested, meta, log, parent, group_name, NULL AS awaits
FROM history;

PRAGMA user_version = 1;
