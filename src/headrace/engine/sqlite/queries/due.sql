-- Scheduled jobs whose time has come, the longest due first.
SELECT seq, queue, lane, width, pinned, token FROM job
WHERE state = 0 AND run_at <= ?1
ORDER BY run_at, seq
LIMIT ?2;
