-- Let a worker take leave. One that holds nothing is gone; one that does is dead, and its jobs are
-- lost to it at once. The lock waits for an exchange of its own that is under way, and the
-- statement after it sees the jobs which that exchange leased.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION retire_worker(p_offset double precision, p_worker text)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM worker w WHERE w.id = p_worker FOR UPDATE;
    DELETE FROM worker w WHERE w.id = p_worker
        AND NOT EXISTS (SELECT FROM job j WHERE j.holder = w.number AND j.state = 3);
    UPDATE worker w
    SET died_at = clock_timestamp() + p_offset * interval '1 second'
    WHERE w.id = p_worker AND w.died_at IS NULL;
END $$;
