-- The finished jobs among those that somebody wants to run again.
SELECT history.number, history.id, history.queue, history.lane, history.width
FROM json_each(?1) AS asked
CROSS JOIN history ON history.id = asked.value;
