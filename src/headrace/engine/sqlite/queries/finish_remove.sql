-- Take a finished job out of the hot table, right after finish.sql has copied it.
DELETE FROM job WHERE seq = ?1;
