-- Make scheduled jobs pending, those whose time has come or (`p_woken`) whose wait is over. Returns
-- them. They are looked at again when they are locked; those with a lane after their lanes, also
-- those that have kept their place: whoever holds a lane may be waiting for one of its jobs.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION move_due(p_moment timestamptz, p_id uuid[], p_woken boolean)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moved uuid[];
    laned uuid[];
    ready boolean;
    lane_queues text[]; lane_names text[]; lane_widths integer[];
    -- A job that was never claimed is new, and sets the width of its lane now; unless it was parked: then it
    -- has been in its lane before.
    new_queues text[]; new_lanes text[]; new_widths integer[];
BEGIN
    WITH moved AS (
        UPDATE job SET state = 2, run_at = least(run_at, p_moment), awaits = NULL
        WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (p_id) AND j.state + 0 = 0 AND j.lane IS NULL
                AND (j.run_at <= p_moment OR p_woken AND wait_is_over(j.id, j.awaits))
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING id
    )
    SELECT coalesce(array_agg(m.id), '{}') INTO moved FROM moved m;
    ready := cardinality(moved) > 0;

    IF cardinality(moved) < cardinality(p_id) THEN
        SELECT array_agg(j.id), array_agg(j.queue), array_agg(j.lane), array_agg(j.width),
            array_agg(j.queue) FILTER (WHERE j.token = 0 AND j.parked IS NULL),
            array_agg(j.lane) FILTER (WHERE j.token = 0 AND j.parked IS NULL),
            array_agg(j.width) FILTER (WHERE j.token = 0 AND j.parked IS NULL)
        INTO laned, lane_queues, lane_names, lane_widths, new_queues, new_lanes, new_widths
        FROM (
            SELECT * FROM job WHERE id = ANY (p_id) AND state + 0 = 0 AND lane IS NOT NULL
            ORDER BY run_at, seq
        ) j;
    END IF;
    IF lane_names IS NOT NULL THEN
        PERFORM lock_lanes(lane_queues, lane_names, lane_widths, false);
        IF new_lanes IS NOT NULL THEN
            PERFORM lock_lanes(new_queues, new_lanes, new_widths, true);
        END IF;
        -- One that has kept its place is ready at once; the others wait in their lane.
        WITH moved AS (
            UPDATE job SET state = CASE WHEN pinned THEN 2 ELSE 1 END,
                run_at = least(run_at, p_moment), awaits = NULL
            WHERE id = ANY (ARRAY(
                SELECT j.id FROM job j
                WHERE j.id = ANY (laned) AND j.state + 0 = 0
                    AND (j.run_at <= p_moment OR p_woken AND wait_is_over(j.id, j.awaits))
                ORDER BY j.id FOR UPDATE
            ))
            RETURNING id, queue, lane, state
        )
        SELECT array_agg(m.id), coalesce(bool_or(m.state = 2), false) OR ready,
            array_agg(m.queue) FILTER (WHERE m.state = 1),
            array_agg(m.lane) FILTER (WHERE m.state = 1)
        INTO laned, ready, lane_queues, lane_names FROM moved m;
        moved := moved || laned;
        IF lane_names IS NOT NULL THEN
            ready := admit_to_lanes(p_moment, lane_queues, lane_names,
                array_fill(0, ARRAY[cardinality(lane_names)])) > 0 OR ready;
        END IF;
    END IF;
    IF ready THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    RETURN moved;
END $$;
