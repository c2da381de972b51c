-- One job without a key. Raises unique_violation if its id is stored already: to ask beforehand, or
-- to catch it here, would cost every job what hardly one needs.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION insert_one(
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
    -- Afterwards: an insert waits for a transaction that deletes the job of that id, so this sees it in
    -- history. Looking and telling are one statement, because each has its price.
    PERFORM CASE WHEN due <= moment THEN pg_notify(current_schema(), 'work') END
    WHERE NOT EXISTS (SELECT FROM history h WHERE h.id = p_id);
    IF NOT FOUND THEN
        RAISE unique_violation;
    END IF;
END $$;
