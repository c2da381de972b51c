-- Invariants that `doctor` checks.

-- name: audit_places
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

-- name: audit_stuck
-- Lanes where somebody waits although a place is free: a wake-up was lost.
SELECT line.queue, line.lane, coalesce(lane.width, 1) AS width, coalesce(lane.used, 0) AS used,
       line.waiting
FROM (
    SELECT queue, lane, count(*) AS waiting FROM job WHERE state = 1 GROUP BY queue, lane
) AS line
LEFT JOIN lane ON lane.queue = line.queue AND lane.lane = line.lane
WHERE lane.used IS NULL OR lane.used < lane.width;

-- name: audit_beaten
-- Lanes where a waiting job beats an unpinned ready one: it should have taken its place.
SELECT DISTINCT head.queue, head.lane
FROM job AS head
JOIN job AS waiting ON waiting.queue = head.queue AND waiting.lane = head.lane
WHERE head.state = 2 AND head.pinned = 0 AND head.lane IS NOT NULL AND waiting.state = 1
  AND waiting.seq = (
      SELECT best.seq FROM job AS best
      WHERE best.queue = head.queue AND best.lane = head.lane AND best.state = 1
      ORDER BY best.priority DESC, best.seq LIMIT 1
  )
  AND (waiting.priority > head.priority
       OR (waiting.priority = head.priority AND waiting.seq < head.seq));

-- name: audit_twice
-- Jobs that are both finished and unfinished.
SELECT job.id FROM job JOIN history ON history.id = job.id;

-- name: audit_keys
-- Keys that lead to no job, or to one that does not show them. A job may show a key that has gone to a
-- newer one, and that may have been pruned since.
SELECT key, task, job_id FROM job_key
WHERE NOT EXISTS (
    SELECT 1 FROM job
    WHERE job.id = job_key.job_id AND job.key = job_key.key AND job.task = job_key.task
  ) AND NOT EXISTS (
    SELECT 1 FROM history
    WHERE history.id = job_key.job_id AND history.key = job_key.key
      AND history.task = job_key.task
  );

-- name: audit_suspended
-- Jobs that wait for something without being scheduled.
SELECT id FROM suspended
WHERE NOT EXISTS (
    SELECT 1 FROM job WHERE job.seq = suspended.seq AND job.id = suspended.id AND +job.state = 0
);

-- name: audit_rates
-- Jobs with a rate whose lane has none.
SELECT id, queue, lane FROM job INDEXED BY job_rated
WHERE rate IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM rate WHERE rate.queue = job.queue AND rate.lane = job.lane);

-- name: audit_parked
-- Jobs that were parked, and are yet to be claimed, whose lane has neither a rate nor a hold.
SELECT id, queue, lane FROM job INDEXED BY job_pinned
WHERE pinned = 1 AND parked IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM rate WHERE rate.queue = job.queue AND rate.lane = job.lane);

-- name: audit_entries
-- Entries whose job is gone.
SELECT DISTINCT job_id FROM entry
WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = entry.job_id)
  AND NOT EXISTS (SELECT 1 FROM history WHERE history.id = entry.job_id);
