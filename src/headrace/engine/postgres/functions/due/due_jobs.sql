-- Make scheduled jobs pending whose time has come, the earliest first. One at a time in a store:
-- a second caller would wait for the first only to find nothing left.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION due_jobs(p_offset double precision, p_limit integer)
RETURNS TABLE (moved integer, next_in double precision)
LANGUAGE plpgsql
-- include: look_up
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    alone boolean := pg_try_advisory_xact_lock('job'::regclass::oid::integer, 1);
    ids uuid[];
    total integer := 0;
BEGIN
    IF alone THEN
        ids := ARRAY(
            SELECT j.id FROM job j WHERE j.state = 0 AND j.run_at <= moment
            ORDER BY j.run_at LIMIT p_limit
        );
    END IF;
    IF cardinality(ids) > 0 THEN
        total := cardinality(move_due(moment, ids, false));
    END IF;
    RETURN QUERY SELECT total, (
        SELECT greatest(date_part('epoch', j.run_at - moment),
            -- The transaction that moves those ends soon.
            CASE WHEN alone THEN 0 ELSE 0.1 END)
        FROM job j WHERE j.state = 0 ORDER BY j.run_at LIMIT 1
    );
END $$;
