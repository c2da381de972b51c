-- The number of the newest finished job that is one too many, if ?1 are kept.
SELECT number FROM history ORDER BY number DESC LIMIT 1 OFFSET ?1;
