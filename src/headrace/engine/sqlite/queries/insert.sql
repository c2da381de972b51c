-- Store one new job. Its state was decided under the write lock, from its time and its lane. An
-- empty lane, key, meta, parent or group is none.
INSERT INTO job (
    seq, id, state, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta, parent, group_name
) VALUES (
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''),
    ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, '')
);
