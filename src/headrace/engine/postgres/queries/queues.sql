-- Every known queue with its depth, the age of its oldest pending job, and tasks of reserved jobs with
-- how many of them there are.
SELECT q.name, q.paused,
    count(*) FILTER (WHERE j.state = 0), count(*) FILTER (WHERE j.state = 1),
    count(*) FILTER (WHERE j.state = 2), count(*) FILTER (WHERE j.state = 3),
    CASE WHEN count(*) FILTER (WHERE j.state IN (1, 2)) > 0 THEN greatest(date_part('epoch',
        clock_timestamp() + $1::double precision * interval '1 second'
        - min(j.run_at) FILTER (WHERE j.state IN (1, 2))), 0) END,
    r.tasks, r.amounts
FROM queue q
LEFT JOIN job j ON j.queue = q.name
LEFT JOIN (
    SELECT x.queue, array_agg(x.task) AS tasks, array_agg(x.amount) AS amounts
    FROM (
        SELECT queue, task, count(*) AS amount FROM job
        WHERE state = 2 AND reserved GROUP BY queue, task
    ) x
    GROUP BY x.queue
) r ON r.queue = q.name
GROUP BY q.name, q.paused, r.tasks, r.amounts
ORDER BY q.name
