-- Put jobs back that are to run again. One that is put off may await something meanwhile. `freed`
-- says which of them gave up their place, `raised` how many may run at once, `rivals` whether some
-- may now beat others of their lane, or be beaten.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
-- Outcome kinds: 0 retry, 1 released, 2 snoozed, -1 the same of one that has not started, 3 reserved with those
-- of its task that come next, -2 reserved alone; 4 and more (NULL: 4) the final state.
CREATE OR REPLACE FUNCTION return_jobs(
    p_moment timestamptz, p_laned boolean,
    p_id uuid[], p_token integer[], p_kind smallint[], p_delay double precision[],
    p_error_type text[], p_error text[], p_entry bytea[], p_awaits text[],
    OUT settled uuid[], OUT queues text[], OUT lanes text[], OUT freed integer[],
    OUT raised integer, OUT rivals boolean
) LANGUAGE plpgsql AS $$
BEGIN
    WITH back AS (
        UPDATE job j SET
            state = CASE
                WHEN t.kind IN (1, 3, -2) THEN 2
                WHEN t.delay > 0 THEN 0
                WHEN j.lane IS NULL OR j.hold THEN 2
                ELSE 1
            END,
            reserved = t.kind IN (3, -2),
            -- Given back unstarted, a job keeps its place unless it is beaten; else `hold` decides.
            pinned = j.pinned OR (t.kind NOT IN (1, 3, -2) AND j.lane IS NOT NULL AND j.hold),
            run_at = CASE
                WHEN t.kind IN (1, 3, -2) THEN j.run_at
                ELSE p_moment + t.delay * interval '1 second'
            END,
            attempt = CASE WHEN t.kind = 0 THEN j.attempt ELSE j.attempt - 1 END,
            error_type = coalesce(t.error_type, j.error_type),
            error = coalesce(t.error, j.error),
            log = CASE WHEN t.entry IS NULL THEN j.log ELSE append_to_log(j.log, t.entry) END,
            awaits = CASE WHEN t.delay > 0 THEN t.awaits::jsonb END,
            holder = NULL, worker = NULL, started_at = NULL
        FROM unnest(p_id, p_token, p_kind, p_delay, p_error_type, p_error, p_entry, p_awaits)
            AS t (id, token, kind, delay, error_type, error, entry, awaits)
        WHERE j.id = ANY (ARRAY[t.id]) AND j.token = t.token AND j.state + 0 = 3
            AND (j.lane IS NOT NULL) = p_laned
            AND t.kind < 4 AND j.cancel_reason IS NULL
        RETURNING j.id, j.state, j.queue, j.lane, j.pinned,
            CASE WHEN j.pinned OR t.kind IN (1, 3, -2) THEN 0 ELSE 1 END AS freed
    )
    SELECT array_agg(b.id), array_agg(b.queue) FILTER (WHERE p_laned),
        array_agg(b.lane) FILTER (WHERE p_laned), array_agg(b.freed) FILTER (WHERE p_laned),
        count(*) FILTER (WHERE b.state = 2),
        coalesce(bool_or(p_laned AND b.state > 0 AND NOT b.pinned), false)
    INTO settled, queues, lanes, freed, raised, rivals FROM back b;
    -- Most that come back are retries: these have started.
    IF p_kind && '{-2,-1,1,2,3}' THEN
        IF EXISTS (SELECT FROM expiry) THEN
            PERFORM return_expiry(p_id, p_kind, settled);
        END IF;
    END IF;
END $$;
