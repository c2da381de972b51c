-- A scheduled job is due now.
UPDATE job SET run_at = ?1 WHERE seq = ?2;
