-- Store one new job. Its state was decided under the write lock, from its time and its lane. An
-- empty lane, key or meta is none.
INSERT INTO job (
    seq, id, state, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta
) VALUES (
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''),
    ?, ?, ?, ?, ?, nullif(?, '')
);
