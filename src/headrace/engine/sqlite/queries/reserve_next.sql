-- Reserve jobs of some tasks among those that are next in line of a queue. Bounded: whoever meets
-- more of them goes on from there.
UPDATE job SET reserved = 1
WHERE seq IN (
    SELECT seq FROM (
        SELECT seq, task FROM job
        WHERE queue = ?1 AND state = 2 AND reserved = 0
        ORDER BY priority DESC, seq
        LIMIT 500
    )
    WHERE task IN (SELECT value FROM json_each(?2))
);
