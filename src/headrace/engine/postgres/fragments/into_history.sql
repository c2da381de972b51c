-- The columns of a finished job, in the order in which functions copy them.
INSERT INTO history (
    id, created_at, run_at, started_at, completed_at, timeout, progress, token, attempt,
    max_attempts, width, state, priority, hold, fail_on_crash, queue, task, source, lane,
    key, worker, stage, message, error_type, error, cancel_reason, args, meta, log, result,
    parent, child_group, admitted_at, rate
)
