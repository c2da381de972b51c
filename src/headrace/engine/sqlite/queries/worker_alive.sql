-- Whether a worker may be given jobs: known, and not declared dead. A lease that has just lapsed is no
-- harm: as long as nobody has declared its worker dead, nobody takes its jobs. Answers whether there
-- are reserved jobs, which it may know or not.
SELECT EXISTS (SELECT 1 FROM job WHERE state = 2 AND reserved = 1)
FROM worker WHERE id = ?1 AND died_at IS NULL;
