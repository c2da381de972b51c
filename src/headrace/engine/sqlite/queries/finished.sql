-- Whether a job is finished, and nobody has run it since it had this token.
SELECT 1 FROM history WHERE id = ?1 AND token = ?2;
