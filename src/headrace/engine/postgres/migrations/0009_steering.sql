-- Cancelling jobs, running them again, and letting workers go: because somebody says so.
-- Jobs are looked at without locking them to learn their lanes; when those are locked, again.

-- Lock jobs, either those with a lane (whose lanes are locked) or those without, in the order of
-- ids, and answer which there are.
CREATE FUNCTION lock_jobs(p_laned boolean, p_id uuid[])
RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT j.id FROM job j WHERE j.id = ANY (p_id) AND (j.lane IS NOT NULL) = p_laned
        ORDER BY j.id FOR UPDATE
    );
END $$;

-- Move jobs that are not running to history as cancelled; with a lane (locked) or without.
CREATE FUNCTION cancel_unstarted(
    p_moment timestamptz, p_laned boolean, p_id uuid[], p_reason text,
    OUT ids uuid[], OUT queues text[], OUT lanes text[], OUT freed integer[]
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
        INSERT INTO history (
            id, created_at, run_at, started_at, completed_at, timeout, progress, token, attempt,
            max_attempts, width, state, priority, hold, fail_on_crash, queue, task, source, lane,
            key, worker, stage, message, error_type, error, cancel_reason, args, meta, log, result,
            parent, child_group
        )
        SELECT id, created_at, run_at, NULL, greatest(p_moment, created_at), timeout, progress,
            token, attempt, max_attempts, width, 7, priority, hold, fail_on_crash, queue, task,
            source, lane, key, NULL, stage, message, NULL, p_reason, NULL, args, meta, log, NULL,
            parent, child_group
        FROM gone
    )
    SELECT array_agg(g.id), array_agg(g.queue), array_agg(g.lane),
        array_agg(CASE WHEN g.state = 2 OR g.pinned THEN 1 ELSE 0 END)
    INTO ids, queues, lanes, freed FROM gone g;
END $$;

-- Ask running jobs to stop; with a lane (locked) or without.
CREATE FUNCTION cancel_running(p_laned boolean, p_id uuid[], p_reason text)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    asked uuid[];
BEGIN
    WITH asked AS (
        UPDATE job SET cancel_reason = coalesce(cancel_reason, p_reason)
        WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (p_id) AND j.state + 0 = 3 AND (j.lane IS NOT NULL) = p_laned
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING id
    )
    SELECT array_agg(a.id) INTO asked FROM asked a;
    PERFORM pg_notify(current_schema(), 'cancel:' || a.id) FROM unnest(asked) AS a (id);
    RETURN coalesce(asked, '{}');
END $$;

-- Cancel jobs. Answers those that are cancelled now, and running ones that were asked to stop.
CREATE FUNCTION cancel_jobs(p_offset double precision, p_id uuid[], p_reason text)
RETURNS TABLE (id uuid, cancelled boolean)
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    -- Jobs whose locks we have, so that none of them starts or comes back between two statements.
    -- One whose lane we have not locked is never among them, whoever runs it again meanwhile.
    met uuid[];
    gone uuid[] := '{}';
    asked uuid[] := '{}';
    step record;
    lane_queues text[]; lane_names text[]; lane_widths integer[];
BEGIN
    met := lock_jobs(false, p_id);
    SELECT * INTO step FROM cancel_unstarted(moment, false, met, p_reason);
    gone := gone || step.ids;
    asked := asked || cancel_running(false, met, p_reason);

    SELECT array_agg(j.id), array_agg(j.queue), array_agg(j.lane), array_agg(j.width)
    INTO met, lane_queues, lane_names, lane_widths
    FROM job j WHERE j.id = ANY (p_id) AND j.lane IS NOT NULL;
    IF lane_names IS NOT NULL THEN
        PERFORM lock_lanes(lane_queues, lane_names, lane_widths, false);
        met := lock_jobs(true, met);
        SELECT * INTO step FROM cancel_unstarted(moment, true, met, p_reason);
        gone := gone || step.ids;
        asked := asked || cancel_running(true, met, p_reason);
        IF step.lanes IS NOT NULL AND fill_lanes(step.queues, step.lanes, step.freed) > 0 THEN
            PERFORM pg_notify(current_schema(), 'work');
        END IF;
    END IF;
    RETURN QUERY
    SELECT g.id, true FROM unnest(gone) AS g (id)
    UNION ALL
    SELECT a.id, false FROM unnest(asked) AS a (id);
END $$;

-- Put finished jobs at the end of the line, and scheduled ones into it; with a lane (locked) or
-- without. They wait in their lane until they are admitted.
CREATE FUNCTION rerun_some(
    p_moment timestamptz, p_laned boolean, p_id uuid[],
    OUT ids uuid[], OUT queues text[], OUT lanes text[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH old AS (
        DELETE FROM history WHERE id = ANY (ARRAY(
            SELECT h.id FROM history h
            WHERE h.id = ANY (p_id) AND (h.lane IS NOT NULL) = p_laned
            ORDER BY h.id FOR UPDATE
        ))
        RETURNING *
    ), again AS (
        INSERT INTO job (
            id, created_at, run_at, timeout, token, max_attempts, width, state, priority, hold,
            fail_on_crash, queue, task, source, lane, key, args, meta, log,
            parent, child_group
        )
        SELECT o.id, o.created_at, p_moment, o.timeout, o.token, o.max_attempts, o.width,
            CASE WHEN p_laned THEN 1 ELSE 2 END, o.priority, o.hold,
            o.fail_on_crash, o.queue, o.task, o.source, o.lane, o.key, o.args, o.meta, o.log,
            o.parent, o.child_group
        FROM old o ORDER BY array_position(p_id, o.id)
        RETURNING id, queue, lane
    ), now AS (
        UPDATE job SET run_at = p_moment, awaits = NULL,
            state = CASE WHEN p_laned AND NOT pinned THEN 1 ELSE 2 END
        WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (p_id) AND j.state + 0 = 0 AND (j.lane IS NOT NULL) = p_laned
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING id, queue, lane
    )
    SELECT array_agg(x.id), array_agg(x.queue), array_agg(x.lane) INTO ids, queues, lanes
    FROM (SELECT * FROM again UNION ALL SELECT * FROM now) x;
END $$;

-- Run finished jobs again, and scheduled ones now. Answers those that were moved.
CREATE FUNCTION rerun_jobs(p_offset double precision, p_id uuid[])
RETURNS uuid[]
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    step record;
    moved uuid[];
    -- Jobs whose lanes are locked. Others may have finished since; they are left alone.
    seen uuid[];
    lane_queues text[]; lane_names text[]; lane_widths integer[];
    new_queues text[]; new_lanes text[]; new_widths integer[];
BEGIN
    SELECT * INTO step FROM rerun_some(moment, false, p_id);
    moved := coalesce(step.ids, '{}');
    SELECT array_agg(x.id ORDER BY x.place), array_agg(x.queue), array_agg(x.lane),
        array_agg(x.width),
        array_agg(x.queue) FILTER (WHERE x.new), array_agg(x.lane) FILTER (WHERE x.new),
        array_agg(x.width) FILTER (WHERE x.new)
    INTO seen, lane_queues, lane_names, lane_widths, new_queues, new_lanes, new_widths
    FROM (
        SELECT h.id, h.queue, h.lane, h.width, false AS new, array_position(p_id, h.id) AS place
        FROM history h WHERE h.id = ANY (p_id) AND h.lane IS NOT NULL
        UNION ALL
        SELECT j.id, j.queue, j.lane, j.width, j.token = 0, array_position(p_id, j.id)
        FROM job j WHERE j.id = ANY (p_id) AND j.state + 0 = 0 AND j.lane IS NOT NULL
        ORDER BY place
    ) x;
    IF lane_names IS NOT NULL THEN
        PERFORM lock_lanes(lane_queues, lane_names, lane_widths, false);
        IF new_lanes IS NOT NULL THEN
            PERFORM lock_lanes(new_queues, new_lanes, new_widths, true);
        END IF;
        SELECT * INTO step FROM rerun_some(moment, true, seen);
        moved := moved || step.ids;
        IF step.lanes IS NOT NULL THEN
            PERFORM admit_to_lanes(step.queues, step.lanes,
                array_fill(0, ARRAY[cardinality(step.lanes)]));
        END IF;
    END IF;
    IF cardinality(moved) > 0 THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    RETURN moved;
END $$;

-- Let a worker take leave. One that holds nothing is gone; one that does is dead, and its jobs are
-- lost to it at once. The lock waits for an exchange of its own that is under way, and the
-- statement after it sees the jobs which that exchange leased.
CREATE FUNCTION retire_worker(p_offset double precision, p_worker text)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM worker w WHERE w.id = p_worker FOR UPDATE;
    DELETE FROM worker w WHERE w.id = p_worker
        AND NOT EXISTS (SELECT FROM job j WHERE j.holder = w.number AND j.state = 3);
    UPDATE worker w
    SET died_at = clock_timestamp() + p_offset * interval '1 second'
    WHERE w.id = p_worker AND w.died_at IS NULL;
END $$;

-- Mark dead workers that hold nothing: `lost` does not ask for their jobs again. A claim keeps the row
-- of its worker locked until it ends. One that is under way is left for the next time, and the
-- statement after the lock sees the jobs of those that have ended; a dead worker begins none.
CREATE FUNCTION mark_emptied_workers()
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    numbers integer[];
BEGIN
    numbers := ARRAY(
        SELECT w.number FROM worker w WHERE w.died_at IS NOT NULL AND NOT w.emptied
        ORDER BY w.number FOR UPDATE SKIP LOCKED
    );
    UPDATE worker w SET emptied = true
    WHERE w.number = ANY (numbers)
        AND NOT EXISTS (SELECT FROM job j WHERE j.holder = w.number AND j.state = 3);
END $$;
