-- Cancel jobs. Returns those that are cancelled now, and running ones that were asked to stop.
CREATE OR REPLACE FUNCTION cancel_jobs(p_offset double precision, p_id uuid[], p_reason text)
RETURNS TABLE (id uuid, cancelled boolean)
LANGUAGE plpgsql
-- include: look_up
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
        IF step.lanes IS NOT NULL
            AND fill_lanes(moment, step.queues, step.lanes, step.freed) > 0 THEN
            PERFORM pg_notify(current_schema(), 'work');
        END IF;
        IF step.parked_lanes IS NOT NULL THEN
            PERFORM say_rates(moment, step.parked_queues, step.parked_lanes, NULL, NULL);
        END IF;
    END IF;
    RETURN QUERY
    SELECT g.id, true FROM unnest(gone) AS g (id)
    UNION ALL
    SELECT a.id, false FROM unnest(asked) AS a (id);
END $$;
