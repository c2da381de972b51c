-- The oldest finished jobs that are past the limit in time or in number. Numbers grow with the time
-- of finishing, so the first rows of the table are the oldest and no index on time is needed.
SELECT number, id, key, task FROM (
    SELECT number, id, key, task, completed_at FROM history ORDER BY number LIMIT ?3
)
WHERE completed_at < ?1 OR number <= ?2;
