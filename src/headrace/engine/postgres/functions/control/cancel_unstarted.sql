-- Move jobs that are not running to history as cancelled; with a lane (locked) or without. Where some were
-- parked, the caller tells `say_rates` that they are gone, as the last that it does.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION cancel_unstarted(
    p_moment timestamptz, p_laned boolean, p_id uuid[], p_reason text,
    OUT ids uuid[], OUT queues text[], OUT lanes text[], OUT freed integer[],
    OUT parked_queues text[], OUT parked_lanes text[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM job WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (p_id) AND j.state + 0 < 3 AND (j.lane IS NOT NULL) = p_laned
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING *
    ), kept AS (
        -- include: into_history
        SELECT id, created_at, run_at, NULL, greatest(p_moment, created_at), timeout, progress,
            token, attempt, max_attempts, width, 7, priority,
            CASE WHEN parked IS NULL THEN hold ELSE parked & 1 = 1 END, fail_on_crash, queue, task,
            source, lane, key, NULL, stage, message, NULL, p_reason, NULL, args, meta, log, NULL,
            parent, child_group, admitted_at, rate
        FROM gone
    )
    SELECT array_agg(g.id), array_agg(g.queue), array_agg(g.lane),
        array_agg(CASE WHEN g.state = 2 OR g.pinned THEN 1 ELSE 0 END),
        array_agg(g.queue) FILTER (WHERE g.parked IS NOT NULL),
        array_agg(g.lane) FILTER (WHERE g.parked IS NOT NULL)
    INTO ids, queues, lanes, freed, parked_queues, parked_lanes FROM gone g;
END $$;
