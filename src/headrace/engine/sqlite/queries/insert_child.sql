-- Store one new job that another has made; as insert.sql, which is for the many that have no parent.
INSERT INTO job (
    seq, id, state, priority, queue, lane, width, hold, run_at, created_at, task, key,
    max_attempts, timeout, on_crash, source, args, meta, parent, group_name
) VALUES (
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''),
    ?, ?, ?, ?, ?, nullif(?, ''), ?, ?
);
