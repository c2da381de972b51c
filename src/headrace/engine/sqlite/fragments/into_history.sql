-- The columns of a finished job, in the order in which statements copy them.
INSERT INTO history (
    id, state, token, attempt, worker, started_at, completed_at, cancel_requested, priority, queue,
    lane, width, hold, run_at, created_at, task, key, max_attempts, timeout, on_crash, source,
    progress, stage, message, error_type, error, result, args, meta, log,
    parent, group_name, admitted_at, rate
)
