-- The number of the ?1-th finished job from the oldest, which is the 0th. Steps over those that are
-- beyond what is kept, and are about to go.
SELECT number FROM history WHERE number >= 0 ORDER BY number LIMIT 1 OFFSET ?1;
