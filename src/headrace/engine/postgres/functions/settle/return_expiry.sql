-- Of jobs that came back: one that was given back unstarted can expire again, if it was running when its
-- time came; one that was put off has started, and does not expire any more. Their locks are held.
--
-- Outcome kinds: 0 retry, 1 released, 2 snoozed, -1 the same of one that has not started, 3 reserved with those
-- of its task that come next, -2 reserved alone; 4 and more (NULL: 4) the final state.
CREATE OR REPLACE FUNCTION return_expiry(p_id uuid[], p_kind smallint[], p_settled uuid[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF 2 = ANY (p_kind) THEN
        DELETE FROM expiry WHERE job_id = ANY (ARRAY(
            SELECT t.id FROM unnest(p_id, p_kind) AS t (id, kind)
            WHERE t.kind = 2 AND t.id = ANY (p_settled)
        ));
    END IF;
    UPDATE expiry SET running = false WHERE job_id = ANY (p_settled) AND running;
END $$;
