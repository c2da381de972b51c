-- Giving places in lanes.
--
-- The order of locks, for every verb: jobs without a lane, by id -> bells (SKIP LOCKED) -> lanes,
-- sorted, in one statement -> jobs with a lane, by id -> ready jobs to claim (SKIP LOCKED), last.
-- A lane is locked in one statement and acted upon in a later one: a statement sees what was
-- committed before it began, and what matters is what was committed before the lock was given.
-- Waiting jobs change only under the lock of their lane, so no promotion has to lock them first.
--
-- `state + 0` instead of `state` keeps the planner from walking a partial index over all jobs of
-- that state where it should look up the few that are asked for.

-- Lock lanes, made where they do not exist: a lock on a missing row locks nothing.
-- New jobs set the width of their lane, of several the last. Jobs that come back leave it as it is,
-- unless nobody is in the lane: then the width of the first counts.
CREATE FUNCTION lock_lanes(p_queue text[], p_lane text[], p_width integer[], p_new boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lane AS l (queue, lane, width, used)
    SELECT DISTINCT ON (u.queue COLLATE "C", u.lane COLLATE "C") u.queue, u.lane, u.width, 0
    FROM unnest(p_queue, p_lane, p_width) WITH ORDINALITY AS u (queue, lane, width, ordinal)
    ORDER BY u.queue COLLATE "C", u.lane COLLATE "C",
        CASE WHEN p_new THEN -u.ordinal ELSE u.ordinal END
    -- A row that fails this WHERE is locked all the same.
    ON CONFLICT (queue, lane) DO UPDATE SET width = EXCLUDED.width
        WHERE l.width <> EXCLUDED.width AND (p_new OR l.used = 0);
END $$;

-- Lock lanes in which jobs run, each named once, with how many of those will leave it. They exist:
-- only lanes without holders are deleted, so where one is missing, somebody else has settled those
-- jobs. Answers the lanes with what was free in them when the lock was given.
CREATE FUNCTION lock_held_lanes(
    p_queue text[], p_lane text[], p_leaving integer[],
    OUT queues text[], OUT lanes text[], OUT leaving integer[], OUT free integer[]
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(x.queue), array_agg(x.lane), array_agg(x.leaving), array_agg(x.free)
    INTO queues, lanes, leaving, free
    FROM (
        SELECT l.queue, l.lane, u.leaving, l.width - l.used AS free
        FROM unnest(p_queue, p_lane, p_leaving) AS u (queue, lane, leaving)
        JOIN lane l ON l.queue = u.queue AND l.lane = u.lane
        ORDER BY l.queue, l.lane FOR NO KEY UPDATE OF l
    ) x;
END $$;

-- Take back `p_freed` places of each lane, besides the `p_free` that are free, and give them to its
-- best waiting jobs. Answers how many became ready. The lanes are locked, and each is named once.
CREATE FUNCTION raise_waiting(p_queue text[], p_lane text[], p_freed integer[], p_free integer[])
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    places tid[];
    ordinals bigint[];
    raised integer := 0;
BEGIN
    SELECT array_agg(w.place), array_agg(k.ordinal) INTO places, ordinals
    FROM unnest(p_queue, p_lane, p_freed, p_free)
        WITH ORDINALITY AS k (queue, lane, freed, free, ordinal)
    CROSS JOIN LATERAL (
        SELECT j.ctid AS place FROM job j
        WHERE j.queue = k.queue AND j.lane = k.lane AND j.state = 1
        ORDER BY j.priority DESC, j.seq
        LIMIT greatest(k.free + k.freed, 0)
    ) w;
    IF places IS NOT NULL THEN
        UPDATE job SET state = 2 WHERE ctid = ANY (places) AND state + 0 = 1;
        GET DIAGNOSTICS raised = ROW_COUNT;
        -- What counts is what was updated. Who does not lock lanes has no business with those jobs.
        IF raised <> cardinality(places) THEN
            RAISE EXCEPTION 'waiting jobs were changed by somebody who has not locked their lanes'
                USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    -- A place that changes hands leaves `used` as it is. Mostly all do: one left, one came.
    IF raised = cardinality(p_lane) AND 1 = ALL (p_freed) AND 0 = ALL (p_free) THEN
        RETURN raised;
    END IF;
    UPDATE lane l SET used = l.used + c.amount
    FROM (
        SELECT max(x.queue) AS queue, max(x.lane) AS lane, sum(x.amount)::integer AS amount
        FROM (
            SELECT u.ordinal, u.queue, u.lane, -u.freed AS amount
            FROM unnest(p_queue, p_lane, p_freed)
                WITH ORDINALITY AS u (queue, lane, freed, ordinal)
            UNION ALL
            SELECT unnest(ordinals), NULL, NULL, 1
        ) x
        GROUP BY x.ordinal HAVING sum(x.amount) <> 0
    ) c
    WHERE l.queue = c.queue AND l.lane = c.lane;
    RETURN raised;
END $$;

-- The same for lanes that may be named several times, and of which is not known what is free.
CREATE FUNCTION fill_lanes(p_queue text[], p_lane text[], p_freed integer[])
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    queues text[]; lanes text[]; freed integer[]; free integer[];
BEGIN
    SELECT array_agg(k.queue), array_agg(k.lane), array_agg(k.freed), array_agg(l.width - l.used)
    INTO queues, lanes, freed, free
    FROM (
        SELECT u.queue, u.lane, sum(u.freed)::integer AS freed
        FROM unnest(p_queue, p_lane, p_freed) AS u (queue, lane, freed)
        GROUP BY u.queue, u.lane
    ) k
    JOIN lane l ON l.queue = k.queue AND l.lane = k.lane;
    RETURN raise_waiting(queues, lanes, freed, free);
END $$;

-- Let waiting jobs put back ready ones of their lane that they beat, then fill the lanes.
-- Needed where jobs came into a lane; where some only left it, `fill_lanes` is enough.
CREATE FUNCTION admit_to_lanes(p_queue text[], p_lane text[], p_freed integer[])
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    back_queue text[];
    back_lane text[];
BEGIN
    WITH looked AS MATERIALIZED (
        SELECT u.queue, u.lane, sum(u.freed)::integer AS freed
        FROM unnest(p_queue, p_lane, p_freed) AS u (queue, lane, freed)
        GROUP BY u.queue, u.lane
    ), contested AS MATERIALIZED (
        -- Lanes whose best waiting job beats their worst ready one: few, and cheaply told.
        SELECT k.queue, k.lane, k.freed
        FROM looked k
        CROSS JOIN LATERAL (
            SELECT j.priority, j.seq FROM job j
            WHERE j.queue = k.queue AND j.lane = k.lane
                AND j.state = 2 AND j.lane IS NOT NULL AND NOT j.pinned
            ORDER BY j.priority, j.seq DESC LIMIT 1
        ) worst
        CROSS JOIN LATERAL (
            SELECT j.priority, j.seq FROM job j
            WHERE j.queue = k.queue AND j.lane = k.lane AND j.state = 1
            ORDER BY j.priority DESC, j.seq LIMIT 1
        ) best
        WHERE (best.priority, -best.seq) > (worst.priority, -worst.seq)
    ), beaten AS MATERIALIZED (
        SELECT y.id
        FROM contested k
        CROSS JOIN LATERAL (
            SELECT l.width, l.width - l.used + k.freed AS free FROM lane l
            WHERE l.queue = k.queue AND l.lane = k.lane
        ) l
        CROSS JOIN LATERAL (
            SELECT x.id, x.state, x.rank, x.ready,
                min(x.rank) FILTER (WHERE x.state = 1) OVER () AS best_waiting
            FROM (
                SELECT u.id, u.state,
                    row_number() OVER (ORDER BY u.priority DESC, u.seq) AS rank,
                    count(*) FILTER (WHERE u.state = 2) OVER () AS ready
                FROM (
                    SELECT j.id, j.state, j.priority, j.seq FROM job j
                    WHERE j.queue = k.queue AND j.lane = k.lane
                        AND j.state = 2 AND j.lane IS NOT NULL AND NOT j.pinned
                    UNION ALL
                    (SELECT j.id, j.state, j.priority, j.seq FROM job j
                     WHERE j.queue = k.queue AND j.lane = k.lane AND j.state = 1
                     ORDER BY j.priority DESC, j.seq LIMIT l.width)
                ) u
            ) x
        ) y
        -- `free` is negative in a lane that was made narrower; its heads stay unless beaten.
        WHERE y.state = 2 AND y.rank > y.ready + l.free AND y.rank > y.best_waiting
    ), back AS (
        -- A claim may take a beaten job first; then it runs, and is not put back.
        UPDATE job SET state = 1, reserved = false
        WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (ARRAY(SELECT b.id FROM beaten b)) AND j.state + 0 = 2
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING queue, lane
    )
    SELECT array_agg(b.queue), array_agg(b.lane) INTO back_queue, back_lane FROM back b;
    RETURN fill_lanes(
        p_queue || back_queue,
        p_lane || back_lane,
        p_freed || array_fill(1, ARRAY[coalesce(cardinality(back_lane), 0)])
    );
END $$;
