-- Lanes with holders or waiting jobs, the most waiting first. A lane with waiting jobs always has a
-- row, because its places are taken. The oldest waiting job tells the age.
SELECT lane.queue, lane.lane, lane.width, lane.used, coalesce(line.waiting, 0) AS waiting,
       line.oldest
FROM lane
LEFT JOIN (
    SELECT queue, lane, count(*) AS waiting, min(run_at) AS oldest
    FROM job WHERE state = 1 GROUP BY queue, lane
) AS line ON line.queue = lane.queue AND line.lane = lane.lane
WHERE (?1 IS NULL OR lane.queue = ?1) AND (?2 IS NULL OR lane.lane = ?2)
  AND (lane.used > 0 OR line.waiting > 0)
ORDER BY waiting DESC, lane.queue, lane.lane
LIMIT ?3;
