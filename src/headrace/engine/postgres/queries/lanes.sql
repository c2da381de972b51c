-- Lanes with holders or waiting jobs, the most waiting first. Only the jobs of lanes are read.
SELECT j.queue, j.lane, coalesce(l.width, max(j.width)) AS width,
    count(*) FILTER (WHERE j.state IN (2, 3) OR j.pinned) AS used,
    count(*) FILTER (WHERE j.state = 1) AS waiting,
    array_agg(j.id::text ORDER BY j.priority DESC, j.seq)
        FILTER (WHERE j.state IN (2, 3) OR j.pinned) AS holders,
    CASE WHEN count(*) FILTER (WHERE j.state = 1) > 0 THEN greatest(date_part('epoch',
        clock_timestamp() + $1::double precision * interval '1 second'
        - min(j.run_at) FILTER (WHERE j.state = 1)), 0) END AS oldest_age
FROM job j LEFT JOIN lane l ON l.queue = j.queue AND l.lane = j.lane
WHERE j.lane IS NOT NULL AND (j.state > 0 OR j.pinned)
    AND ($2::text IS NULL OR j.queue = $2) AND ($3::text IS NULL OR j.lane = $3)
GROUP BY j.queue, j.lane, l.width
ORDER BY waiting DESC, j.queue, j.lane
LIMIT $4
