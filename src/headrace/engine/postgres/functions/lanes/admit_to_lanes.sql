-- Let waiting jobs put back ready ones of their lane that they beat, then fill the lanes.
-- Needed where jobs came into a lane; where some only left it, `fill_lanes` is enough.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION admit_to_lanes(
    p_moment timestamptz, p_queue text[], p_lane text[], p_freed integer[]
)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    back_queue text[];
    back_lane text[];
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT u.queue, u.lane, sum(u.freed)::integer AS freed
        FROM unnest(p_queue, p_lane, p_freed) AS u (queue, lane, freed)
        GROUP BY u.queue, u.lane
    ), contested AS MATERIALIZED (
        -- Lanes whose best waiting job beats their worst ready one: few, and cheap to find.
        SELECT k.queue, k.lane, k.freed
        FROM asked k
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
        -- A claim may take a beaten job first; then it runs or is parked, and is not put back.
        UPDATE job SET state = 1, reserved = false
        WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (ARRAY(SELECT b.id FROM beaten b)) AND j.state + 0 = 2
                AND NOT j.pinned
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING queue, lane
    )
    SELECT array_agg(b.queue), array_agg(b.lane) INTO back_queue, back_lane FROM back b;
    RETURN fill_lanes(
        p_moment,
        p_queue || back_queue,
        p_lane || back_lane,
        p_freed || array_fill(1, ARRAY[coalesce(cardinality(back_lane), 0)])
    );
END $$;
