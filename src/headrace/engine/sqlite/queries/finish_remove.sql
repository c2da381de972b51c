-- Take finished jobs out of the hot table, right after they were copied to history.
DELETE FROM job WHERE seq IN (SELECT value FROM json_each(?1));
