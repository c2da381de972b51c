-- Whether a worker may be given jobs: known, and not declared dead. A lease that has just lapsed is no
-- harm: as long as nobody has declared its worker dead, nobody takes its jobs. Answers which reserved
-- jobs it may claim, NULL if that has to be found out.
SELECT offered FROM worker WHERE id = ?1 AND died_at IS NULL;
