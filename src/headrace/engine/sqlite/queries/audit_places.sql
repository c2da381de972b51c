-- Lanes whose used places are not the number of jobs that hold one. Both sides from one snapshot.
SELECT place.queue, place.lane, coalesce(lane.used, 0) AS used, coalesce(holder.count, 0) AS held
FROM (
    SELECT queue, lane FROM lane
    UNION
    SELECT queue, lane FROM job WHERE lane IS NOT NULL
) AS place
LEFT JOIN lane ON lane.queue = place.queue AND lane.lane = place.lane
LEFT JOIN (
    SELECT queue, lane, count(*) AS count FROM job
    WHERE lane IS NOT NULL AND (state IN (2, 3) OR pinned = 1)
    GROUP BY queue, lane
) AS holder ON holder.queue = place.queue AND holder.lane = place.lane
WHERE used <> held;
