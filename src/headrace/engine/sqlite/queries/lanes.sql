-- Lanes: their holders, and who is admitted next.

-- name: lanes_look
-- What has to be known of lanes to hand places on, for many lanes at once: the width and the used
-- places, and who waits first. ?1 is a JSON array of [queue, lane].
SELECT place.key, lane.width, lane.used, (
    SELECT job.seq FROM job
    WHERE job.queue = json_extract(place.value, '$[0]')
      AND job.lane = json_extract(place.value, '$[1]') AND job.state = 1
    ORDER BY job.priority DESC, job.seq
    LIMIT 1
)
FROM json_each(?) AS place
CROSS JOIN lane ON lane.queue = json_extract(place.value, '$[0]')
               AND lane.lane = json_extract(place.value, '$[1]');

-- name: lanes_look_heads
-- What has to be known of lanes to let arrivals in, for many lanes at once: the width and the used
-- places (NULL: no row, so none are), who waits first, and whether that one beats the ready job that
-- would go back first. A pinned ready job (a retry that keeps its place) never goes back. ?1 is a
-- JSON array of [queue, lane].
SELECT place.key, lane.width, lane.used, waiting.seq,
       coalesce(waiting.priority > head.priority
                OR (waiting.priority = head.priority AND waiting.seq < head.seq), 0)
FROM json_each(?) AS place
LEFT JOIN lane ON lane.queue = json_extract(place.value, '$[0]')
              AND lane.lane = json_extract(place.value, '$[1]')
LEFT JOIN job AS waiting ON waiting.seq = (
    SELECT job.seq FROM job
    WHERE job.queue = json_extract(place.value, '$[0]')
      AND job.lane = json_extract(place.value, '$[1]') AND job.state = 1
    ORDER BY job.priority DESC, job.seq
    LIMIT 1
)
LEFT JOIN job AS head ON head.seq = (
    SELECT job.seq FROM job
    WHERE job.queue = json_extract(place.value, '$[0]')
      AND job.lane = json_extract(place.value, '$[1]')
      AND job.state = 2 AND job.pinned = 0 AND job.lane IS NOT NULL
    ORDER BY job.priority, job.seq DESC
    LIMIT 1
);

-- name: lane_write
-- Set the width and the used places of one lane. The caller has read them in the same transaction.
INSERT INTO lane (queue, lane, width, used) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, lane) DO UPDATE SET width = excluded.width, used = excluded.used;

-- name: promote
-- Make the best waiting jobs of one lane ready. The index job_waiting is in their order, so a lane
-- with a hundred thousand waiting jobs costs no more than one with two. Those in ?1, a JSON array, have
-- not waited: they came in this transaction.
UPDATE job SET
    state = 2,
    admitted_at = CASE WHEN seq IN (SELECT value FROM json_each(?)) THEN admitted_at ELSE ? END
WHERE seq IN (
    SELECT seq FROM job
    WHERE queue = ? AND lane = ? AND state = 1
    ORDER BY priority DESC, seq
    LIMIT ?
);

-- name: promote_chosen
-- Make jobs of many lanes ready at once that have waited until ?1; lanes_look found them in this
-- transaction.
UPDATE job SET state = 2, admitted_at = ? WHERE seq IN (SELECT value FROM json_each(?));

-- name: promote_arrived
-- As promote_chosen, of jobs that came in this transaction: they have not waited.
UPDATE job SET state = 2 WHERE seq IN (SELECT value FROM json_each(?));

-- name: best_waiting
-- The waiting job of one lane that would be admitted next.
SELECT priority, seq FROM job
WHERE queue = ? AND lane = ? AND state = 1
ORDER BY priority DESC, seq
LIMIT 1;

-- name: worst_head
-- The ready job of one lane that goes back first if a better one arrives. A pinned one (a retry
-- that keeps its place) never goes back.
SELECT priority, seq FROM job
WHERE queue = ? AND lane = ? AND state = 2 AND pinned = 0 AND lane IS NOT NULL
ORDER BY priority, seq DESC
LIMIT 1;

-- name: put_back
-- Put a beaten ready job back among the waiting ones of its lane; it keeps its number of arrival.
UPDATE job SET state = 1, reserved = 0 WHERE seq = ? AND state = 2;

-- name: lanes_idle
-- Idle lanes behind one of them, in their order.
SELECT queue, lane FROM lane WHERE used = 0 AND (queue, lane) > (?, ?) ORDER BY queue, lane LIMIT ?;

-- name: lane_forget
-- Forget a lane that is idle. Always safe: no row means that no place is used, and the width rides on
-- jobs.
DELETE FROM lane WHERE queue = ? AND lane = ? AND used = 0;
