-- When a job finished: the first one from number ?1 on.
SELECT number, completed_at FROM history WHERE number >= ?1 ORDER BY number LIMIT 1;
