-- Every queue that is known or has jobs, with its depth, the age of its oldest pending job, and tasks of
-- reserved jobs with how many of them there are.
SELECT name, coalesce(q.paused, false),
    coalesce(j.scheduled, 0), coalesce(j.waiting, 0), coalesce(j.ready, 0), coalesce(j.running, 0),
    CASE WHEN j.pending_since IS NOT NULL THEN greatest(date_part('epoch',
        clock_timestamp() + $1::double precision * interval '1 second' - j.pending_since), 0) END,
    r.tasks, r.amounts
FROM queue q
FULL JOIN (
    SELECT queue AS name,
        count(*) FILTER (WHERE state = 0) AS scheduled,
        count(*) FILTER (WHERE state = 1) AS waiting,
        count(*) FILTER (WHERE state = 2) AS ready,
        count(*) FILTER (WHERE state = 3) AS running,
        min(run_at) FILTER (WHERE state IN (1, 2)) AS pending_since
    FROM job GROUP BY queue
) j USING (name)
LEFT JOIN (
    SELECT x.queue AS name, array_agg(x.task) AS tasks, array_agg(x.amount) AS amounts
    FROM (
        SELECT queue, task, count(*) AS amount FROM job
        WHERE state = 2 AND reserved GROUP BY queue, task
    ) x
    GROUP BY x.queue
) r USING (name)
ORDER BY name
