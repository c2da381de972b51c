-- Store jobs in a transaction of our own. Returns the jobs that were not stored, with the id of the
-- one that exists instead. One that is stored already is left alone, so that a call can be repeated.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION insert_jobs(
    p_offset double precision,
    -- include: new_jobs
    -- What the caller has to say of keys besides (NULL: nothing): holds, or that parked jobs are gone.
    , p_key_queue text[] DEFAULT NULL, p_key_lane text[] DEFAULT NULL,
    p_key_hold double precision[] DEFAULT NULL
)
RETURNS TABLE (ordinal integer, existing uuid)
LANGUAGE plpgsql
-- include: look_up
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    owners uuid[];
    known uuid[];
    stored uuid[];
    ready boolean;
    lane_queues text[]; lane_names text[]; lane_widths integer[]; lane_rates text[];
BEGIN
    -- A job without key and lane leaves nothing behind if its insert meets the same id.
    known := known_ids(p_id, p_key IS NOT NULL OR p_lane IS NOT NULL);
    -- Keys before lanes: who waits for another's key must not hold up a lane meanwhile.
    IF p_key IS NOT NULL THEN
        owners := own_keys_soon(p_id, p_task, p_key, known);
    END IF;
    IF p_lane IS NOT NULL THEN
        SELECT array_agg(u.queue), array_agg(u.lane), array_agg(u.width)
        INTO lane_queues, lane_names, lane_widths
        FROM (
            SELECT u.id, u.lane, u.owner, coalesce(u.queue, p_queue[1]) AS queue,
                coalesce(u.width, p_width[1]) AS width,
                coalesce(
                    to_timestamp(u.run_at),
                    moment + coalesce(u.delay, p_delay[1]) * interval '1 second'
                ) AS run_at
            FROM unnest(p_id, p_lane, p_queue, p_width, p_delay, p_run_at, owners)
                AS u (id, lane, queue, width, delay, run_at, owner)
        ) u
        WHERE u.lane IS NOT NULL AND u.run_at <= moment
            AND (u.owner IS NULL OR u.owner = u.id) AND u.id NOT IN (SELECT unnest(known));
        IF lane_names IS NOT NULL THEN
            PERFORM lock_lanes(lane_queues, lane_names, lane_widths, true);
        END IF;
    END IF;

    WITH fresh AS (
        INSERT INTO job (
            id, created_at, run_at, timeout, max_attempts, width, state, priority, hold,
            fail_on_crash, queue, task, source, lane, key, args, meta,
            parent, child_group, rate
        )
        SELECT u.id, moment, u.run_at,
            nullif(coalesce(u.timeout, p_timeout[1]), -1),
            coalesce(u.max_attempts, p_max_attempts[1]), coalesce(u.width, p_width[1]),
            CASE WHEN u.run_at > moment THEN 0 WHEN u.lane IS NULL THEN 2 ELSE 1 END,
            coalesce(u.priority, p_priority[1]), coalesce(u.hold, p_hold[1]),
            coalesce(u.fail_on_crash, p_fail_on_crash[1]), coalesce(u.queue, p_queue[1]),
            coalesce(u.task, p_task[1]), coalesce(u.source, p_source[1]), u.lane, u.key,
            coalesce(u.args, p_args[1]), u.meta, u.parent, u.child_group,
            u.rate::double precision[]
        FROM (
            SELECT u.*, coalesce(
                to_timestamp(u.run_at_epoch),
                moment + coalesce(u.delay, p_delay[1]) * interval '1 second'
            ) AS run_at
            FROM unnest(
                p_id, p_args, p_task, p_queue, p_priority, p_delay, p_run_at, p_key, p_lane,
                p_width, p_hold, p_max_attempts, p_timeout, p_fail_on_crash, p_source, p_meta,
                p_parent, p_group, p_rate, owners
            ) AS u (
                id, args, task, queue, priority, delay, run_at_epoch, key, lane,
                width, hold, max_attempts, timeout, fail_on_crash, source, meta,
                parent, child_group, rate, owner
            )
        ) u
        WHERE (u.owner IS NULL OR u.owner = u.id) AND u.id NOT IN (SELECT unnest(known))
        ON CONFLICT (id) DO NOTHING
        RETURNING id, state
    )
    SELECT array_agg(f.id), bool_or(f.state = 2) INTO stored, ready FROM fresh f;
    stored := without_finished(stored);
    IF p_expires_at IS NOT NULL OR p_expires_in IS NOT NULL THEN
        PERFORM keep_expiry(moment, stored, p_id, p_expires_at, p_expires_in);
    END IF;

    IF lane_names IS NOT NULL THEN
        ready := admit_to_lanes(moment, lane_queues, lane_names,
            array_fill(0, ARRAY[cardinality(lane_names)])) > 0 OR ready;
    END IF;
    IF ready THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    IF p_rate IS NOT NULL OR p_key_lane IS NOT NULL THEN
        SELECT array_agg(coalesce(u.queue, p_queue[1])), array_agg(u.lane), array_agg(u.rate)
        INTO lane_queues, lane_names, lane_rates
        FROM unnest(p_id, p_queue, p_lane, p_rate) AS u (id, queue, lane, rate)
        -- Not IN, which would become a loop over both.
        WHERE u.rate IS NOT NULL AND NOT u.id NOT IN (SELECT unnest(stored));
        PERFORM say_rates(moment, p_key_queue || lane_queues, p_key_lane || lane_names,
            array_fill(NULL::text, ARRAY[coalesce(cardinality(p_key_lane), 0)]) || lane_rates,
            p_key_hold);
    END IF;
    IF coalesce(cardinality(stored), 0) < cardinality(p_id) THEN
        RETURN QUERY
        SELECT u.ordinal::integer, coalesce(u.owner, u.id)
        FROM unnest(p_id, owners) WITH ORDINALITY AS u (id, owner, ordinal)
        WHERE u.id NOT IN (SELECT unnest(stored));
    END IF;
END $$;
