-- The number of the ?1-th finished job from the oldest, which is the 0th.
SELECT number FROM history ORDER BY number LIMIT 1 OFFSET ?1;
