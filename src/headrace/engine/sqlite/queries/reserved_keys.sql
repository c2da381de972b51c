-- The places in line of reserved jobs of one queue and task, as claimable_keys.sql has them.
SELECT priority, seq FROM job
WHERE queue = ?1 AND task = ?2 AND state = 2 AND reserved = 1
ORDER BY priority DESC, seq
LIMIT ?3;
