-- Taking in jobs that have no lane and no parent, and differ in id, arguments, key and meta only:
-- nearly all of them. They need but a part of what `insert_jobs` does. The path and the planner's
-- settings are those of the connection: setting them for a call costs as much as a look-up.

-- One job without a key. Raises unique_violation if its id is stored already: to ask beforehand, or
-- to catch it here, would cost every job what hardly one needs.
CREATE FUNCTION insert_one(
    p_offset double precision, p_id uuid, p_args bytea,
    p_task text, p_queue text, p_priority smallint,
    p_delay double precision, p_run_at double precision, p_width integer, p_hold boolean,
    p_max_attempts integer, p_timeout double precision, p_fail_on_crash boolean, p_source text,
    p_meta bytea
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    due timestamptz := coalesce(
        to_timestamp(p_run_at), moment + p_delay * interval '1 second'
    );
BEGIN
    INSERT INTO job (
        id, created_at, run_at, timeout, max_attempts, width, state, priority, hold, fail_on_crash,
        queue, task, source, args, meta
    )
    VALUES (
        p_id, moment, due, p_timeout, p_max_attempts, p_width,
        CASE WHEN due > moment THEN 0 ELSE 2 END, p_priority, p_hold, p_fail_on_crash, p_queue,
        p_task, p_source, p_args, p_meta
    );
    -- Afterwards: an insert waits for whoever is deleting the job of that id, so this sees it in
    -- history. Looking and telling are one statement, because each has its price.
    PERFORM CASE WHEN due <= moment THEN pg_notify(current_schema(), 'work') END
    WHERE NOT EXISTS (SELECT FROM history h WHERE h.id = p_id);
    IF NOT FOUND THEN
        RAISE unique_violation;
    END IF;
END $$;

-- Make keys of one task theirs. Raises unique_violation if one is taken, and lock_not_available if
-- that is not known soon, as `own_keys_soon` does.
CREATE FUNCTION take_keys(p_id uuid[], p_task text, p_key text[])
RETURNS void LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
BEGIN
    -- In one order: who waits for another's key must not hold one that the other wants.
    INSERT INTO job_key (key, task, job_id)
    SELECT u.key, p_task, u.id
    FROM unnest(p_key, p_id) AS u (key, id) ORDER BY u.key COLLATE "C";
END $$;

-- Several, whose ids differ: all with a key or none (then `p_key` is NULL), each with meta of its own
-- or none (then `p_meta` is). Answers like `insert_jobs`.
-- They are nearly always new, so they are stored without looking first whether they are: that takes
-- half the time. If one is not, everything is undone and done again with care.
CREATE FUNCTION insert_alike(
    p_offset double precision, p_id uuid[], p_args bytea[], p_key text[], p_meta bytea[],
    p_task text, p_queue text, p_priority smallint,
    p_delay double precision, p_run_at double precision, p_width integer, p_hold boolean,
    p_max_attempts integer, p_timeout double precision, p_fail_on_crash boolean, p_source text
)
RETURNS TABLE (ordinal integer, existing uuid) LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    due timestamptz := coalesce(
        to_timestamp(p_run_at), moment + p_delay * interval '1 second'
    );
BEGIN
    BEGIN
        IF p_key IS NOT NULL THEN
            PERFORM take_keys(p_id, p_task, p_key);
        END IF;
        INSERT INTO job (
            id, created_at, run_at, timeout, max_attempts, width, state, priority, hold,
            fail_on_crash, queue, task, source, key, args, meta
        )
        SELECT u.id, moment, due, p_timeout, p_max_attempts, p_width,
            CASE WHEN due > moment THEN 0 ELSE 2 END, p_priority, p_hold, p_fail_on_crash, p_queue,
            p_task, p_source, u.key, u.args, u.meta
        FROM unnest(p_id, p_args, p_key, p_meta) AS u (id, args, key, meta);
        -- Afterwards, as in `without_finished`.
        IF cardinality(known_ids(p_id, false)) > 0 THEN
            RAISE unique_violation;
        END IF;
        IF due <= moment THEN
            PERFORM pg_notify(current_schema(), 'work');
        END IF;
        RETURN;
    EXCEPTION WHEN unique_violation THEN
        NULL;
    END;
    RETURN QUERY SELECT * FROM insert_jobs(
        p_offset, p_id, p_args, ARRAY[p_task], ARRAY[p_queue], ARRAY[p_priority], ARRAY[p_delay],
        array_fill(p_run_at, ARRAY[cardinality(p_id)]), p_key, NULL, ARRAY[p_width], ARRAY[p_hold],
        ARRAY[p_max_attempts], ARRAY[coalesce(p_timeout, -1)], ARRAY[p_fail_on_crash],
        ARRAY[p_source], p_meta, NULL, NULL
    );
END $$;
