-- Rates of lanes and queues, and jobs that are parked for them.

-- name: rate_read
-- What is kept of one lane, or of a queue, in the columns of rate_write.
SELECT queue, lane, count, per, burst, set_count, set_per, set_burst, tat, counted_at,
       held_until, line_at, line_tat, line_priority, line_seq
FROM rate WHERE queue = ? AND lane = ?;

-- name: rate_write
-- Keep it. The caller has read it in the same transaction.
INSERT OR REPLACE INTO rate (
    queue, lane, count, per, burst, set_count, set_per, set_burst, tat, counted_at,
    held_until, line_at, line_tat, line_priority, line_seq
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: rate_delete
-- Forget what nobody says any more, unless a job is yet to be claimed that was parked by it: the claim
-- gives it back what it was before.
DELETE FROM rate
WHERE queue = ? AND lane = ?
  AND NOT EXISTS (
      SELECT 1 FROM job INDEXED BY job_pinned
      WHERE job.queue = rate.queue AND job.lane = rate.lane AND job.pinned = 1
        AND job.parked IS NOT NULL
  );

-- name: rate_list
-- All that have a rate or a hold, and the asked queue and lane, NULL: any, in the columns of rate_read.
SELECT queue, lane, count, per, burst, set_count, set_per, set_burst, tat, counted_at,
       held_until, line_at, line_tat, line_priority, line_seq
FROM rate
WHERE (? IS NULL OR queue = ?) AND (? IS NULL OR lane = ?)
  AND (coalesce(set_count, count) IS NOT NULL OR held_until > ?)
ORDER BY queue, lane LIMIT ?;

-- name: rates_idle
-- Rates behind one of them that may be forgotten: no operator has set them, their times have passed (?3
-- is now), no unfinished job has a rate of this lane, and none was parked by it.
SELECT queue, lane FROM rate
WHERE (queue, lane) > (?, ?) AND set_count IS NULL
  AND max(tat, held_until + coalesce((burst - 1) * per / count, 0)) <= ?
  AND NOT EXISTS (
      SELECT 1 FROM job INDEXED BY job_rated
      WHERE job.queue = rate.queue AND job.lane = rate.lane AND job.rate IS NOT NULL
  )
  AND NOT EXISTS (
      SELECT 1 FROM job INDEXED BY job_pinned
      WHERE job.queue = rate.queue AND job.lane = rate.lane AND job.pinned = 1
        AND job.parked IS NOT NULL
  )
ORDER BY queue, lane LIMIT ?;

-- name: rate_forget
-- Forget one that rates_idle has found, unless it is used again.
DELETE FROM rate
WHERE queue = ? AND lane = ? AND set_count IS NULL
  AND max(tat, held_until + coalesce((burst - 1) * per / count, 0)) <= ?
  AND NOT EXISTS (
      SELECT 1 FROM job INDEXED BY job_rated
      WHERE job.queue = rate.queue AND job.lane = rate.lane AND job.rate IS NOT NULL
  )
  AND NOT EXISTS (
      SELECT 1 FROM job INDEXED BY job_pinned
      WHERE job.queue = rate.queue AND job.lane = rate.lane AND job.pinned = 1
        AND job.parked IS NOT NULL
  );

-- name: rates_ahead
-- Rates behind one of them that have counted a start after ?3: the clock has gone back since.
SELECT queue, lane FROM rate WHERE (queue, lane) > (?, ?) AND counted_at > ?
ORDER BY queue, lane LIMIT ?;

-- name: rate_of_job
-- Keep what a job says of the rate of its lane.
UPDATE job SET rate = ? WHERE seq = ?;

-- name: rated_ready
-- The ready jobs of one queue with what has to be known of their rates, best first, without those whose
-- time to start is over. Read only as far as needed.
SELECT -priority, seq, queue, lane, task, attempt, rate FROM job
WHERE queue = ? AND state = 2 AND reserved = 0
  AND NOT EXISTS (SELECT 1 FROM expiry WHERE expiry.seq = job.seq AND expiry.at <= ?)
ORDER BY priority DESC, seq
LIMIT ?;

-- name: rated_reserved
-- As rated_ready, for the reserved jobs of one queue and task.
SELECT -priority, seq, queue, lane, task, attempt, rate FROM job
WHERE queue = ? AND task = ? AND state = 2 AND reserved = 1
  AND NOT EXISTS (SELECT 1 FROM expiry WHERE expiry.seq = job.seq AND expiry.at <= ?)
ORDER BY priority DESC, seq
LIMIT ?;

-- name: known_tasks
-- The tasks that a worker knows, a JSON array; NULL: all.
SELECT tasks FROM worker WHERE id = ?;

-- name: reserve
-- Reserve ready jobs for workers that know their tasks.
UPDATE job SET reserved = 1 WHERE seq IN (SELECT value FROM json_each(?));

-- name: park
-- Schedule a ready job for the time at which its lane may let it start; it keeps its place.
UPDATE job SET
    state = 0, run_at = ?, reserved = 0, parked = coalesce(parked, hold + 2 * pinned),
    hold = 1, pinned = 1
WHERE seq = ?;

-- name: unpark
-- Those of some jobs that were parked, and are claimed now (?1), are as before.
UPDATE job SET run_at = min(run_at, ?), hold = parked & 1, pinned = parked >> 1, parked = NULL
WHERE seq IN (SELECT value FROM json_each(?)) AND parked IS NOT NULL;

-- name: parked_due
-- Make parked jobs ready whose time has come.
UPDATE job SET state = 2
WHERE seq IN (
    SELECT seq FROM job INDEXED BY job_parked
    WHERE state = 0 AND parked IS NOT NULL AND run_at <= ?
    ORDER BY run_at
    LIMIT ?
)
RETURNING queue;

-- name: parked_next
-- When the next parked jobs may start, and in which queues.
SELECT run_at, queue FROM job INDEXED BY job_parked WHERE state = 0 AND parked IS NOT NULL
ORDER BY run_at LIMIT ?;

-- name: parked_line
-- The parked jobs of one lane, best first, without those whose time to start is over. Read only as far
-- as needed.
SELECT seq, run_at, task, attempt, rate FROM job INDEXED BY job_parked_line
WHERE queue = ? AND lane = ? AND state = 0 AND parked IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM expiry WHERE expiry.seq = job.seq AND expiry.at <= ?)
ORDER BY priority DESC, seq;

-- name: parked_until
-- A parked job may start at another time.
UPDATE job SET run_at = ? WHERE seq = ?;

-- name: parked_again
-- Make the best parked jobs of one lane ready (?4 of them, below 0: all), so that a claim looks at them
-- again.
UPDATE job SET state = 2, run_at = ?
WHERE seq IN (
    SELECT seq FROM job INDEXED BY job_parked_line
    WHERE queue = ? AND lane = ? AND state = 0 AND parked IS NOT NULL
    ORDER BY priority DESC, seq
    LIMIT ?
);
