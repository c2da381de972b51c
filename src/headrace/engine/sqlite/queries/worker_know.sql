-- A living worker knows these tasks from now on.
UPDATE worker SET tasks = ?2, offered = NULL WHERE id = ?1 AND died_at IS NULL;
