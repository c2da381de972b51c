-- Make the best waiting jobs of one lane ready. The index job_waiting is in their order, so a lane
-- with a hundred thousand waiting jobs costs no more than one with two.
UPDATE job SET state = 2
WHERE seq IN (
    SELECT seq FROM job
    WHERE queue = ?1 AND lane = ?2 AND state = 1
    ORDER BY priority DESC, seq
    LIMIT ?3
);
