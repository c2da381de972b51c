-- The unfinished jobs in some states, each state from the index of those that are in it.
SELECT seq FROM job WHERE state = 0 AND :scheduled
UNION ALL
SELECT seq FROM job WHERE state = 1 AND :waiting
UNION ALL
SELECT seq FROM job WHERE state = 2 AND reserved = 0 AND :ready
UNION ALL
SELECT seq FROM job WHERE state = 2 AND reserved = 1 AND :ready
UNION ALL
SELECT seq FROM job WHERE state = 3 AND :running
