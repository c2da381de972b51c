-- Lanes where somebody waits although a place is free: a wake-up was lost.
SELECT line.queue, line.lane, coalesce(lane.width, 1) AS width, coalesce(lane.used, 0) AS used,
       line.waiting
FROM (
    SELECT queue, lane, count(*) AS waiting FROM job WHERE state = 1 GROUP BY queue, lane
) AS line
LEFT JOIN lane ON lane.queue = line.queue AND lane.lane = line.lane
WHERE lane.used IS NULL OR lane.used < lane.width;
