-- Reserve those jobs that are of the same queue and task as these reserved ones, among the next in
-- line of their queues. Bounded: whoever meets more of them goes on from there. Jobs that somebody
-- else is taking are passed over.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION reserve_next(p_id uuid[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    places tid[];
BEGIN
    WITH line AS MATERIALIZED (
        SELECT j.queue, array_agg(DISTINCT j.task) AS tasks FROM job j
        WHERE j.id = ANY (p_id) AND j.state + 0 = 2 AND j.reserved
        GROUP BY j.queue
    )
    SELECT array_agg(next.place) INTO places
    FROM line l
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place, j.task FROM job j
        WHERE j.queue = l.queue AND j.state = 2 AND NOT j.reserved
        ORDER BY j.priority DESC, j.seq LIMIT 500
    ) next
    WHERE next.task = ANY (l.tasks);
    UPDATE job SET reserved = true
    WHERE ctid = ANY (ARRAY(
        SELECT j.ctid FROM job j
        WHERE j.ctid = ANY (places) AND j.state + 0 = 2 AND NOT j.reserved
        FOR NO KEY UPDATE SKIP LOCKED
    ));
END $$;
