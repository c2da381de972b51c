-- Store jobs in a transaction of the caller, who calls this with a JSON array of jobs: one text
-- parameter means the same to every driver. Nothing is locked but the new rows and keys; a row
-- of lane_admission for each lane asks the next claim to do what `insert_jobs` does itself. The notification is
-- delivered when, and only if, the caller commits.
-- Returns like `insert_jobs`. A first row with the number 0 says that a queue's row does not tell that it
-- is used now, or that this transaction does not see it: another one has to write that down.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION insert_jobs_within(p_offset double precision, p_jobs text)
RETURNS TABLE (ordinal integer, existing uuid)
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    owners uuid[];
    known uuid[];
    stored uuid[];
    ids uuid[]; tasks text[]; keys text[];
    expires_at double precision[]; expires_in double precision[];
    some_expire boolean;
BEGIN
    SELECT array_agg(u.id ORDER BY u.ordinal), array_agg(u.task ORDER BY u.ordinal),
        array_agg(u.key ORDER BY u.ordinal),
        array_agg(u.expires_at ORDER BY u.ordinal), array_agg(u.expires_in ORDER BY u.ordinal),
        bool_or(u.expires_at IS NOT NULL OR u.expires_in IS NOT NULL)
    INTO ids, tasks, keys, expires_at, expires_in, some_expire
    FROM (
        SELECT (e.item ->> 'id')::uuid AS id, e.item ->> 'task' AS task, e.item ->> 'key' AS key,
            (e.item ->> 'expires_at')::double precision AS expires_at,
            (e.item ->> 'expires_in')::double precision AS expires_in,
            e.ordinal
        FROM json_array_elements(p_jobs::json) WITH ORDINALITY AS e (item, ordinal)
    ) u;
    known := known_ids(ids, true);
    owners := own_keys(ids, tasks, ARRAY(
        SELECT CASE WHEN u.id NOT IN (SELECT unnest(known)) THEN u.key END
        FROM unnest(ids, keys) WITH ORDINALITY AS u (id, key, ordinal) ORDER BY u.ordinal
    ));
    WITH fresh AS (
        INSERT INTO job (
            id, created_at, run_at, timeout, max_attempts, width, state, priority, hold,
            fail_on_crash, queue, task, source, lane, key, args, meta,
            parent, child_group, rate
        )
        SELECT u.id, moment, u.run_at, u.timeout, u.max_attempts, u.width,
            CASE WHEN u.run_at > moment THEN 0 WHEN u.lane IS NULL THEN 2 ELSE 1 END,
            u.priority, u.hold, u.fail_on_crash, u.queue, u.task, u.source, u.lane, u.key,
            decode(u.args, 'base64'), decode(u.meta, 'base64'), u.parent, u.child_group,
            u.rate::double precision[]
        FROM (
            SELECT r.*, coalesce(
                to_timestamp(r.run_at_epoch), moment + r.delay * interval '1 second'
            ) AS run_at, e.ordinal
            FROM json_array_elements(p_jobs::json) WITH ORDINALITY AS e (item, ordinal)
            CROSS JOIN LATERAL json_to_record(e.item) AS r (
                id uuid, args text, task text, queue text, priority smallint,
                delay double precision, run_at_epoch double precision, key text, lane text,
                width integer, hold boolean, max_attempts integer, timeout double precision,
                fail_on_crash boolean, source text, meta text,
                parent uuid, child_group text, rate text
            )
        ) u
        WHERE coalesce(owners[u.ordinal], u.id) = u.id AND u.id NOT IN (SELECT unnest(known))
        ORDER BY u.ordinal
        ON CONFLICT (id) DO NOTHING
        RETURNING id, state, queue, lane, width, seq, rate
    ), requested AS (
        INSERT INTO lane_admission (queue, lane, width)
        SELECT DISTINCT ON (f.queue, f.lane) f.queue, f.lane, f.width
        FROM fresh f WHERE f.state = 1
        ORDER BY f.queue, f.lane, f.seq DESC
    ), said AS (
        -- The next claim keeps it, once this is committed.
        INSERT INTO said_rate (queue, lane, rate)
        SELECT f.queue, f.lane, f.rate
        FROM (
            SELECT DISTINCT ON (f.queue, f.lane) f.queue, f.lane, f.rate
            FROM fresh f WHERE f.rate IS NOT NULL
            ORDER BY f.queue, f.lane, f.seq DESC
        ) f
        WHERE NOT EXISTS (
            SELECT FROM rate r
            WHERE r.lane = f.lane AND r.queue = f.queue
                AND r.count = f.rate[1] AND r.per = f.rate[2] AND r.burst = f.rate[3]
        )
    )
    SELECT array_agg(f.id) INTO stored FROM fresh f;
    stored := without_finished(stored);
    IF some_expire THEN
        PERFORM keep_expiry(moment, stored, ids, expires_at, expires_in);
    END IF;
    PERFORM pg_notify(current_schema(), 'work');
    RETURN QUERY
    SELECT 0, NULL::uuid
    WHERE EXISTS (
        SELECT FROM json_array_elements(p_jobs::json) AS e (item)
        WHERE NOT EXISTS (
            SELECT FROM queue q
            WHERE q.name = e.item ->> 'queue'
                AND q.used_at BETWEEN moment - interval '1 hour' AND moment + interval '1 hour'
        )
    );
    RETURN QUERY
    SELECT u.ordinal::integer, coalesce(u.owner, u.id)
    FROM unnest(ids, owners) WITH ORDINALITY AS u (id, owner, ordinal)
    WHERE u.id NOT IN (SELECT unnest(stored));
END $$;
