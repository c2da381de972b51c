-- Taking jobs in.

-- Make the keys of jobs theirs, or find whose they are. Answers for each job the id that its
-- (task, key) belongs to; NULL for one without a key. Of equal ones in a call the first counts.
CREATE FUNCTION own_keys(p_id uuid[], p_task text[], p_key text[])
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    owners uuid[];
    orphans integer;
BEGIN
    LOOP
        INSERT INTO job_key (key, task, job_id)
        SELECT DISTINCT ON (u.key COLLATE "C", u.task COLLATE "C") u.key, u.task, u.id
        FROM unnest(p_id, p_task, p_key) WITH ORDINALITY AS u (id, task, key, ordinal)
        WHERE u.key IS NOT NULL
        ORDER BY u.key COLLATE "C", u.task COLLATE "C", u.ordinal
        ON CONFLICT DO NOTHING;
        -- A transaction of a caller may see the past: a key that was pruned since, beside the one
        -- that was made here instead, which nobody can have deleted. That one counts. Not a join:
        -- it would stop at the first that it finds, because keys are unique.
        SELECT array_agg(x.owner ORDER BY x.ordinal),
            count(*) FILTER (WHERE x.key IS NOT NULL AND x.owner IS NULL)
        INTO owners, orphans
        FROM (
            SELECT u.ordinal, u.key, (
                SELECT k.job_id FROM job_key k WHERE k.key = u.key AND k.task = u.task
                ORDER BY k.xmax::text <> '0' LIMIT 1
            ) AS owner
            FROM unnest(p_task, p_key) WITH ORDINALITY AS u (task, key, ordinal)
        ) x;
        -- A key that was pruned between the two statements is free now: once more.
        EXIT WHEN orphans = 0;
    END LOOP;
    RETURN owners;
END $$;

-- The same for a transaction of our own. A key may be held by a transaction of a caller, who decides
-- how long it stays open: raises lock_not_available instead of waiting for that.
CREATE FUNCTION own_keys_soon(p_id uuid[], p_task text[], p_key text[])
RETURNS uuid[] LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
BEGIN
    RETURN own_keys(p_id, p_task, p_key);
END $$;

-- Which of these ids are stored already. Ids grow with time, so one probe rules out for nearly
-- every call that they are in history; `p_unfinished` asks to look among unfinished jobs, too. The probe
-- is for ids from the least of these on, not for the newest in history: where all was pruned, its
-- entries would be passed over, and where the planner believes so, it would sort all that came since.
CREATE FUNCTION known_ids(p_id uuid[], p_unfinished boolean)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    known uuid[] := '{}';
BEGIN
    IF EXISTS (
        SELECT FROM history h
        WHERE h.id >= (SELECT u.id FROM unnest(p_id) AS u (id) ORDER BY u.id LIMIT 1)
    ) THEN
        known := ARRAY(SELECT h.id FROM unnest(p_id) AS u (id) JOIN history h ON h.id = u.id);
    END IF;
    IF p_unfinished THEN
        known := known || ARRAY(
            SELECT j.id FROM unnest(p_id) AS u (id) JOIN job j ON j.id = u.id
        );
    END IF;
    RETURN known;
END $$;

-- A job may finish between the look for its id and the insert: then it was made a second time.
-- An insert waits for whoever is deleting the job of that id, so this sees it in history.
CREATE FUNCTION without_finished(p_stored uuid[])
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    finished uuid[] := known_ids(p_stored, false);
BEGIN
    IF cardinality(finished) = 0 THEN
        RETURN p_stored;
    END IF;
    DELETE FROM job WHERE id = ANY (finished);
    RETURN ARRAY(
        SELECT s.id FROM unnest(p_stored) AS s (id) WHERE s.id NOT IN (SELECT unnest(finished))
    );
END $$;

-- Store jobs in a transaction of our own. A column whose values are all the same is sent as one
-- element; `p_key`, `p_lane`, `p_run_at`, `p_meta`, `p_parent` and `p_group` are NULL if no job has
-- one; a timeout of -1 means none. Answers the jobs that were not stored, with the id of the one
-- that exists instead. Each id comes once. One that is stored already is left alone, so that a call
-- can be repeated.
CREATE FUNCTION insert_jobs(
    p_offset double precision,
    p_id uuid[], p_args bytea[], p_task text[], p_queue text[], p_priority smallint[],
    p_delay double precision[], p_run_at double precision[], p_key text[], p_lane text[],
    p_width integer[], p_hold boolean[], p_max_attempts integer[], p_timeout double precision[],
    p_fail_on_crash boolean[], p_source text[], p_meta bytea[],
    p_parent uuid[], p_group text[]
)
RETURNS TABLE (ordinal integer, existing uuid)
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
    owners uuid[];
    known uuid[];
    stored uuid[];
    ready boolean;
    lane_queues text[]; lane_names text[]; lane_widths integer[];
BEGIN
    -- A job without key and lane leaves nothing behind if its insert meets the same id.
    known := known_ids(p_id, p_key IS NOT NULL OR p_lane IS NOT NULL);
    -- Keys before lanes: who waits for another's key must not hold up a lane meanwhile.
    IF p_key IS NOT NULL THEN
        owners := own_keys_soon(
            p_id,
            CASE WHEN cardinality(p_task) = 1
                THEN array_fill(p_task[1], ARRAY[cardinality(p_id)]) ELSE p_task END,
            CASE WHEN cardinality(known) = 0 THEN p_key ELSE ARRAY(
                SELECT CASE WHEN u.id NOT IN (SELECT unnest(known)) THEN u.key END
                FROM unnest(p_id, p_key) WITH ORDINALITY AS u (id, key, ordinal)
                ORDER BY u.ordinal
            ) END
        );
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
            parent, child_group
        )
        SELECT u.id, moment, u.run_at,
            nullif(coalesce(u.timeout, p_timeout[1]), -1),
            coalesce(u.max_attempts, p_max_attempts[1]), coalesce(u.width, p_width[1]),
            CASE WHEN u.run_at > moment THEN 0 WHEN u.lane IS NULL THEN 2 ELSE 1 END,
            coalesce(u.priority, p_priority[1]), coalesce(u.hold, p_hold[1]),
            coalesce(u.fail_on_crash, p_fail_on_crash[1]), coalesce(u.queue, p_queue[1]),
            coalesce(u.task, p_task[1]), coalesce(u.source, p_source[1]), u.lane, u.key,
            coalesce(u.args, p_args[1]), u.meta, u.parent, u.child_group
        FROM (
            SELECT u.*, coalesce(
                to_timestamp(u.run_at_epoch),
                moment + coalesce(u.delay, p_delay[1]) * interval '1 second'
            ) AS run_at
            FROM unnest(
                p_id, p_args, p_task, p_queue, p_priority, p_delay, p_run_at, p_key, p_lane,
                p_width, p_hold, p_max_attempts, p_timeout, p_fail_on_crash, p_source, p_meta,
                p_parent, p_group, owners
            ) AS u (
                id, args, task, queue, priority, delay, run_at_epoch, key, lane,
                width, hold, max_attempts, timeout, fail_on_crash, source, meta,
                parent, child_group, owner
            )
        ) u
        WHERE (u.owner IS NULL OR u.owner = u.id) AND u.id NOT IN (SELECT unnest(known))
        ON CONFLICT (id) DO NOTHING
        RETURNING id, state
    )
    SELECT array_agg(f.id), bool_or(f.state = 2) INTO stored, ready FROM fresh f;
    stored := without_finished(stored);

    IF lane_names IS NOT NULL THEN
        ready := admit_to_lanes(lane_queues, lane_names,
            array_fill(0, ARRAY[cardinality(lane_names)])) > 0 OR ready;
    END IF;
    IF ready THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    IF coalesce(cardinality(stored), 0) < cardinality(p_id) THEN
        RETURN QUERY
        SELECT u.ordinal::integer, coalesce(u.owner, u.id)
        FROM unnest(p_id, owners) WITH ORDINALITY AS u (id, owner, ordinal)
        WHERE u.id NOT IN (SELECT unnest(stored));
    END IF;
END $$;

-- Change a record, guarded like record_put.sql, record_create.sql and record_replace.sql. False: it
-- has another version.
CREATE FUNCTION change_record(
    p_offset double precision, p_kind text, p_key text, p_body bytea, p_version bigint
)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
BEGIN
    IF p_version > 0 THEN
        UPDATE record SET version = version + 1, body = p_body, updated_at = moment
        WHERE kind = p_kind AND key = p_key AND version = p_version;
    ELSE
        INSERT INTO record AS r (kind, key, version, body, updated_at)
        VALUES (p_kind, p_key, 1, p_body, moment)
        ON CONFLICT (kind, key) DO UPDATE
            SET version = r.version + 1, body = EXCLUDED.body, updated_at = EXCLUDED.updated_at
            WHERE p_version IS NULL;
    END IF;
    RETURN FOUND;
END $$;

-- Change a record and store jobs in one transaction. Answers like `insert_jobs`; a row with the
-- number 0 says that the record has another version, and that nothing was done.
CREATE FUNCTION insert_jobs_and_record(
    p_record_kind text, p_record_key text, p_record_body bytea, p_record_version bigint,
    p_offset double precision,
    p_id uuid[], p_args bytea[], p_task text[], p_queue text[], p_priority smallint[],
    p_delay double precision[], p_run_at double precision[], p_key text[], p_lane text[],
    p_width integer[], p_hold boolean[], p_max_attempts integer[], p_timeout double precision[],
    p_fail_on_crash boolean[], p_source text[], p_meta bytea[],
    p_parent uuid[], p_group text[]
)
RETURNS TABLE (ordinal integer, existing uuid)
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    -- The record first: of several who want to change it only one goes on to keys and lanes.
    IF change_record(p_offset, p_record_kind, p_record_key, p_record_body, p_record_version) THEN
        RETURN QUERY SELECT * FROM insert_jobs(p_offset, p_id, p_args, p_task, p_queue, p_priority,
            p_delay, p_run_at, p_key, p_lane, p_width, p_hold, p_max_attempts, p_timeout,
            p_fail_on_crash, p_source, p_meta, p_parent, p_group);
    ELSE
        RETURN QUERY SELECT 0, NULL::uuid;
    END IF;
END $$;
