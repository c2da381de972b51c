-- Mark dead workers that hold nothing: `lost` does not ask for their jobs again. A claim keeps the
-- row of its worker locked until it ends. One that is under way is left for the next time, and the
-- statement after the lock sees the jobs of those that have ended; a dead worker begins none.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION mark_emptied_workers()
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    numbers integer[];
BEGIN
    numbers := ARRAY(
        SELECT w.number FROM worker w WHERE w.died_at IS NOT NULL AND w.emptied_of IS DISTINCT FROM w.died_at
        ORDER BY w.number FOR UPDATE SKIP LOCKED
    );
    UPDATE worker w SET emptied_of = w.died_at
    WHERE w.number = ANY (numbers)
        AND NOT EXISTS (SELECT FROM job j WHERE j.holder = w.number AND j.state = 3);
END $$;
