-- Whether a worker may be given jobs: known, and not declared dead. A lease that has just lapsed is no
-- harm: as long as nobody has declared its worker dead, nobody takes its jobs.
SELECT 1 FROM worker WHERE id = ?1 AND died_at IS NULL;
