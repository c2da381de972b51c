-- Moving scheduled jobs on: their time has come, or something that they await.

-- Whether one of the things that a suspended job awaits has come about. Counts no further than it
-- has to: of ten thousand unfinished children it looks at one more than may be left.
CREATE FUNCTION wait_is_over(p_id uuid, p_awaits jsonb)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT
        FROM jsonb_to_recordset(p_awaits) AS a (type text, name text, "group" text, "left" numeric)
        WHERE CASE
            WHEN a.type = 'event' THEN EXISTS (
                SELECT FROM entry e
                WHERE e.job_id = p_id AND e.kind = 'event' AND e.name = a.name
            )
            WHEN a."group" IS NULL THEN a."left" >= (
                SELECT count(*) FROM (
                    SELECT FROM job c WHERE c.parent = p_id
                    LIMIT least(a."left", 1000000000)::bigint + 1
                ) unfinished
            )
            ELSE a."left" >= (
                SELECT count(*) FROM (
                    SELECT FROM job c WHERE c.parent = p_id AND c.child_group = a."group"
                    LIMIT least(a."left", 1000000000)::bigint + 1
                ) unfinished
            )
        END
    );
END $$;

-- Make scheduled jobs pending, those whose time has come or (`p_woken`) whose wait is over. Answers
-- them. They are looked at again when they are locked; those with a lane after their lanes, also
-- those that have kept their place: whoever holds a lane may be waiting for one of its jobs.
CREATE FUNCTION move_due(p_moment timestamptz, p_id uuid[], p_woken boolean)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moved uuid[];
    laned uuid[];
    ready boolean;
    lane_queues text[]; lane_names text[]; lane_widths integer[];
    -- A job that was never claimed is new, and sets the width of its lane now.
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
            array_agg(j.queue) FILTER (WHERE j.token = 0),
            array_agg(j.lane) FILTER (WHERE j.token = 0),
            array_agg(j.width) FILTER (WHERE j.token = 0)
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
            ready := admit_to_lanes(lane_queues, lane_names,
                array_fill(0, ARRAY[cardinality(lane_names)])) > 0 OR ready;
        END IF;
    END IF;
    IF ready THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    RETURN moved;
END $$;

-- Make scheduled jobs pending whose time has come, the earliest first. One at a time in a store:
-- a second caller would wait for the first only to find nothing left.
CREATE FUNCTION due_jobs(p_offset double precision, p_limit integer)
RETURNS TABLE (moved integer, next_in double precision)
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
            -- Whoever is moving those will be done in a moment.
            CASE WHEN alone THEN 0 ELSE 0.1 END)
        FROM job j WHERE j.state = 0 ORDER BY j.run_at LIMIT 1
    );
END $$;

-- Make suspended jobs pending whose wait is over. Whoever has changed what a job awaits calls this
-- in a later transaction, which sees that change and all that were committed before it: the last
-- one to change something sees everything. Those who meet at a job lock it one after the other.
CREATE FUNCTION wake_jobs(p_offset double precision, p_id uuid[])
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

-- Deliver an event to a job. The lock lets it be claimed and given back, but not finish meanwhile.
CREATE FUNCTION signal_job(p_offset double precision, p_id uuid, p_name text, p_body bytea)
RETURNS text
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    now_token integer;
    unfinished boolean;
    answer text;
BEGIN
    LOOP
        SELECT j.token INTO now_token FROM job j WHERE j.id = p_id FOR KEY SHARE;
        IF FOUND THEN
            INSERT INTO entry (job_id, token, kind, name, body, at)
            VALUES (p_id, now_token, 'event', p_name, p_body, moment)
            ON CONFLICT DO NOTHING;
            RETURN CASE WHEN FOUND THEN 'delivered' ELSE 'already' END;
        END IF;
        SELECT EXISTS (SELECT FROM job j WHERE j.id = p_id), CASE
            WHEN EXISTS (
                SELECT FROM entry e
                WHERE e.job_id = p_id AND e.kind = 'event' AND e.name = p_name
            ) THEN 'already'
            WHEN EXISTS (SELECT FROM history h WHERE h.id = p_id) THEN 'finished'
            ELSE 'unknown'
        END INTO unfinished, answer;
        -- It may have been run again between the two statements: once more.
        EXIT WHEN NOT unfinished;
    END LOOP;
    RETURN answer;
END $$;
