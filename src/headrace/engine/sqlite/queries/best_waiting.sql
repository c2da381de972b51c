-- The waiting job of one lane that would be admitted next.
SELECT priority, seq FROM job
WHERE queue = ?1 AND lane = ?2 AND state = 1
ORDER BY priority DESC, seq
LIMIT 1;
