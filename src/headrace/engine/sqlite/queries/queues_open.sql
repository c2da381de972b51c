-- The queues that are not paused. Small: one row per name that was ever used.
SELECT name FROM queue WHERE paused = 0;
