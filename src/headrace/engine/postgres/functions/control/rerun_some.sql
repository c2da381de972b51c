-- Put finished jobs at the end of the line, and scheduled ones into it; with a lane (locked) or
-- without. They wait in their lane until they are admitted.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION rerun_some(
    p_moment timestamptz, p_laned boolean, p_id uuid[], p_token integer[],
    OUT ids uuid[], OUT queues text[], OUT lanes text[], OUT rates text[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH old AS (
        DELETE FROM history WHERE id = ANY (ARRAY(
            SELECT h.id FROM history h
            WHERE h.id = ANY (p_id) AND (h.lane IS NOT NULL) = p_laned
                AND (p_token IS NULL OR h.token = p_token[array_position(p_id, h.id)])
            ORDER BY h.id FOR UPDATE
        ))
        RETURNING *
    ), unbound AS (
        -- Whether or not it started in time before: now it has no time to start by.
        DELETE FROM expiry WHERE job_id = ANY (ARRAY(SELECT o.id FROM old o))
    ), again AS (
        INSERT INTO job (
            id, created_at, run_at, timeout, token, max_attempts, width, state, priority, hold,
            fail_on_crash, queue, task, source, lane, key, args, meta, log,
            parent, child_group, rate
        )
        SELECT o.id, o.created_at, p_moment, o.timeout, o.token, o.max_attempts, o.width,
            CASE WHEN p_laned THEN 1 ELSE 2 END, o.priority, o.hold,
            o.fail_on_crash, o.queue, o.task, o.source, o.lane, o.key, o.args, o.meta, o.log,
            o.parent, o.child_group, o.rate
        FROM old o ORDER BY array_position(p_id, o.id)
        RETURNING id, queue, lane, rate
    ), now AS (
        UPDATE job SET run_at = p_moment, awaits = NULL,
            state = CASE WHEN p_laned AND NOT pinned THEN 1 ELSE 2 END
        WHERE id = ANY (ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (p_id) AND j.state + 0 = 0 AND (j.lane IS NOT NULL) = p_laned
                AND p_token IS NULL
            ORDER BY j.id FOR UPDATE
        ))
        RETURNING id, queue, lane, rate
    )
    SELECT array_agg(x.id), array_agg(x.queue), array_agg(x.lane), array_agg(x.rate::text)
    INTO ids, queues, lanes, rates
    FROM (SELECT * FROM again UNION ALL SELECT * FROM now) x;
END $$;
