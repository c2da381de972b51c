-- A new worker of this name is here: earlier ones are dead, whatever their lease says.
UPDATE worker SET died_at = ?3 WHERE name = ?1 AND id <> ?2 AND died_at IS NULL;
