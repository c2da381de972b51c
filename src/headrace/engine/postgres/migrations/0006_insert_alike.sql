-- Taking in jobs that have no key, no lane and no parent, and differ in id and arguments only:
-- nearly all of them. They need but a part of what `insert_jobs` does. The path and the planner's
-- settings are those of the connection: setting them for a call costs as much as a look-up.

-- One job. False: its id is stored already.
CREATE FUNCTION insert_one(
    p_offset double precision, p_id uuid, p_args bytea,
    p_task text, p_queue text, p_priority smallint,
    p_delay double precision, p_run_at double precision, p_width integer, p_hold boolean,
    p_max_attempts integer, p_timeout double precision, p_fail_on_crash boolean, p_source text,
    p_meta bytea
)
RETURNS boolean LANGUAGE plpgsql AS $$
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
    )
    ON CONFLICT (id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Afterwards: an insert waits for whoever is deleting the job of that id, so this sees it.
    IF EXISTS (SELECT FROM history h WHERE h.id = p_id) THEN
        DELETE FROM job j WHERE j.id = p_id;
        RETURN false;
    END IF;
    IF due <= moment THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    RETURN true;
END $$;

-- Several, whose ids differ. Answers like `insert_jobs`.
CREATE FUNCTION insert_alike(
    p_offset double precision, p_id uuid[], p_args bytea[],
    p_task text, p_queue text, p_priority smallint,
    p_delay double precision, p_run_at double precision, p_width integer, p_hold boolean,
    p_max_attempts integer, p_timeout double precision, p_fail_on_crash boolean, p_source text,
    p_meta bytea
)
RETURNS TABLE (ordinal integer, existing uuid) LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    due timestamptz := coalesce(
        to_timestamp(p_run_at), moment + p_delay * interval '1 second'
    );
    stored uuid[];
BEGIN
    WITH fresh AS (
        INSERT INTO job (
            id, created_at, run_at, timeout, max_attempts, width, state, priority, hold,
            fail_on_crash, queue, task, source, args, meta
        )
        SELECT u.id, moment, due, p_timeout, p_max_attempts, p_width,
            CASE WHEN due > moment THEN 0 ELSE 2 END, p_priority, p_hold, p_fail_on_crash, p_queue,
            p_task, p_source, u.args, p_meta
        FROM unnest(p_id, p_args) AS u (id, args)
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    )
    SELECT array_agg(f.id) INTO stored FROM fresh f;
    stored := without_finished(stored);
    IF due <= moment THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    IF coalesce(cardinality(stored), 0) < cardinality(p_id) THEN
        RETURN QUERY
        SELECT u.ordinal::integer, u.id
        FROM unnest(p_id) WITH ORDINALITY AS u (id, ordinal)
        WHERE u.id NOT IN (SELECT unnest(stored));
    END IF;
END $$;
