-- Run finished jobs again, and scheduled ones now; with `p_token` only finished ones that have it.
-- Returns those that were moved.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION rerun_jobs(p_offset double precision, p_id uuid[], p_token integer[])
RETURNS uuid[]
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    step record;
    moved uuid[];
    -- Jobs whose lanes are locked. Others may have finished since; they are left alone.
    seen uuid[]; seen_tokens integer[];
    lane_queues text[]; lane_names text[]; lane_widths integer[];
    new_queues text[]; new_lanes text[]; new_widths integer[];
    rates text[];
BEGIN
    SELECT * INTO step FROM rerun_some(moment, false, p_id, p_token);
    moved := coalesce(step.ids, '{}');
    SELECT array_agg(x.id ORDER BY x.place),
        CASE WHEN p_token IS NOT NULL THEN array_agg(p_token[x.place] ORDER BY x.place) END,
        array_agg(x.queue), array_agg(x.lane),
        array_agg(x.width),
        array_agg(x.queue) FILTER (WHERE x.new), array_agg(x.lane) FILTER (WHERE x.new),
        array_agg(x.width) FILTER (WHERE x.new)
    INTO seen, seen_tokens, lane_queues, lane_names, lane_widths, new_queues, new_lanes, new_widths
    FROM (
        SELECT h.id, h.queue, h.lane, h.width, false AS new, array_position(p_id, h.id) AS place
        FROM history h
        WHERE h.id = ANY (p_id) AND h.lane IS NOT NULL
            AND (p_token IS NULL OR h.token = p_token[array_position(p_id, h.id)])
        UNION ALL
        SELECT j.id, j.queue, j.lane, j.width, j.token = 0 AND j.parked IS NULL,
            array_position(p_id, j.id)
        FROM job j
        WHERE j.id = ANY (p_id) AND j.state + 0 = 0 AND j.lane IS NOT NULL AND p_token IS NULL
        ORDER BY place
    ) x;
    IF lane_names IS NOT NULL THEN
        PERFORM lock_lanes(lane_queues, lane_names, lane_widths, false);
        IF new_lanes IS NOT NULL THEN
            PERFORM lock_lanes(new_queues, new_lanes, new_widths, true);
        END IF;
        SELECT * INTO step FROM rerun_some(moment, true, seen, seen_tokens);
        moved := moved || step.ids;
        IF step.lanes IS NOT NULL THEN
            PERFORM admit_to_lanes(moment, step.queues, step.lanes,
                array_fill(0, ARRAY[cardinality(step.lanes)]));
        END IF;
        SELECT array_agg(u.queue), array_agg(u.lane), array_agg(u.rate)
        INTO lane_queues, lane_names, rates
        FROM unnest(step.queues, step.lanes, step.rates) AS u (queue, lane, rate)
        WHERE u.rate IS NOT NULL;
    END IF;
    IF cardinality(moved) > 0 THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    IF rates IS NOT NULL THEN
        PERFORM say_rates(moment, lane_queues, lane_names, rates, NULL, p_back => true);
    END IF;
    RETURN moved;
END $$;
