-- The number of the finished job that has ?1 older ones.
SELECT number FROM history ORDER BY number LIMIT 1 OFFSET ?1;
