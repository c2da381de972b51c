-- Ids of suspended jobs after one of them.
SELECT id FROM suspended WHERE id > ?1 ORDER BY id LIMIT ?2;
