-- Take back `p_freed` places of each lane, besides the `p_free` that are free, and give them to its
-- best waiting jobs. Returns how many became ready. The lanes are locked, and each is named once.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION promote_waiting(
    p_moment timestamptz, p_queue text[], p_lane text[], p_freed integer[], p_free integer[]
)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    places tid[];
    ordinals bigint[];
    raised integer := 0;
BEGIN
    SELECT array_agg(w.place), array_agg(k.ordinal) INTO places, ordinals
    FROM unnest(p_queue, p_lane, p_freed, p_free)
        WITH ORDINALITY AS k (queue, lane, freed, free, ordinal)
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM job j
        WHERE j.queue = k.queue AND j.lane = k.lane AND j.state = 1
        ORDER BY j.priority DESC, j.seq
        LIMIT greatest(k.free + k.freed, 0)
    ) w;
    IF places IS NOT NULL THEN
        UPDATE job SET state = 2,
            -- One that this transaction has put into its lane has not waited for its place. (What
            -- `settle_and_insert` does is a transaction of its own to the server.)
            admitted_at = CASE
                WHEN xmin <> pg_current_xact_id()::xid AND greatest(created_at, run_at) < p_moment
                THEN p_moment ELSE admitted_at
            END
        WHERE ctid = ANY (places) AND state + 0 = 1;
        GET DIAGNOSTICS raised = ROW_COUNT;
        -- What counts is what was updated. Only those who lock a lane may change its waiting jobs.
        IF raised <> cardinality(places) THEN
            RAISE EXCEPTION 'waiting jobs were changed without the locks of their lanes'
                USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    -- A place that changes hands leaves `used` as it is. Mostly all do: one left, one came.
    IF raised = cardinality(p_lane) AND 1 = ALL (p_freed) AND 0 = ALL (p_free) THEN
        RETURN raised;
    END IF;
    UPDATE lane l SET used = l.used + c.amount
    FROM (
        SELECT max(x.queue) AS queue, max(x.lane) AS lane, sum(x.amount)::integer AS amount
        FROM (
            SELECT u.ordinal, u.queue, u.lane, -u.freed AS amount
            FROM unnest(p_queue, p_lane, p_freed)
                WITH ORDINALITY AS u (queue, lane, freed, ordinal)
            UNION ALL
            SELECT unnest(ordinals), NULL, NULL, 1
        ) x
        GROUP BY x.ordinal HAVING sum(x.amount) <> 0
    ) c
    WHERE l.queue = ANY (ARRAY[c.queue]) AND l.lane = ANY (ARRAY[c.lane]);
    RETURN raised;
END $$;
