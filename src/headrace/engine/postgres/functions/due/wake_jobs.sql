-- Make suspended jobs pending whose wait is over. Programs that change what a job awaits call this
-- in a later transaction, which sees that change and all that were committed before it: the last
-- one to change something sees everything. Those who meet at a job lock it one after the other.
CREATE OR REPLACE FUNCTION wake_jobs(p_offset double precision, p_id uuid[])
RETURNS uuid[]
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    ids uuid[] := ARRAY(
        SELECT j.id FROM job j
        WHERE j.id = ANY (p_id) AND j.awaits IS NOT NULL AND wait_is_over(j.id, j.awaits)
    );
BEGIN
    IF cardinality(ids) = 0 THEN
        RETURN ids;
    END IF;
    RETURN move_due(clock_timestamp() + p_offset * interval '1 second', ids, true);
END $$;
