-- Every known queue with its depth, and the age of its oldest pending job.
SELECT q.name, q.paused,
    count(*) FILTER (WHERE j.state = 0), count(*) FILTER (WHERE j.state = 1),
    count(*) FILTER (WHERE j.state = 2), count(*) FILTER (WHERE j.state = 3),
    CASE WHEN count(*) FILTER (WHERE j.state IN (1, 2)) > 0 THEN greatest(date_part('epoch',
        clock_timestamp() + $1::double precision * interval '1 second'
        - min(j.run_at) FILTER (WHERE j.state IN (1, 2))), 0) END
FROM queue q LEFT JOIN job j ON j.queue = q.name
GROUP BY q.name, q.paused
ORDER BY q.name
