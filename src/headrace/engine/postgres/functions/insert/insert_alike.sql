-- Several, whose ids differ: all with a key or none (then `p_key` is NULL), each with meta of its own
-- or none (then `p_meta` is). Returns like `insert_jobs`.
-- They are nearly always new, so they are stored without looking first whether they are: that takes
-- half the time. If one is not, everything is undone and done again with care.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION insert_alike(
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
        ARRAY[p_source], p_meta, NULL, NULL, NULL, NULL, NULL
    );
END $$;
