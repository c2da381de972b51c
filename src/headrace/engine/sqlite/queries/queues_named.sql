-- Those of some queues, a JSON array of names, that are not paused.
SELECT value FROM json_each(?1) AS asked
WHERE NOT EXISTS (SELECT 1 FROM queue WHERE queue.name = asked.value AND queue.paused = 1);
