-- A worker is dead from now on; jobs that it still holds are found by lost.sql.
UPDATE worker SET died_at = ?2 WHERE id = ?1 AND died_at IS NULL;
