-- Declare workers dead whose lease has lapsed.
UPDATE worker SET died_at = ?1 WHERE died_at IS NULL AND lease_until <= ?1;
