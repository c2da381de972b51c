-- The jobs that are leased to a worker.
SELECT j.id, j.token, j.attempt, j.task, j.queue, j.args, j.max_attempts, j.timeout,
    j.fail_on_crash, j.priority, j.lane, j.key, j.meta,
    greatest(date_part('epoch', j.started_at - j.run_at), 0) AS wait,
    j.cancel_reason IS NOT NULL AS cancel_requested, j.parent
FROM worker w JOIN job j ON j.holder = w.number AND j.state = 3
WHERE w.id = $1
ORDER BY j.priority DESC, j.seq
