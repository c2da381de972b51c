-- A page of children, the newest first; NULL leaves a condition out. All of a parent's are read
-- along the indexes on parent before they are sorted (OFFSET 0 keeps the planner from anything
-- else): walking along ids until enough of them were met would be a walk over all jobs.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION list_children(
    p_parent uuid, p_group text, p_unfinished boolean, p_finished boolean,
    p_before uuid, p_states smallint[], p_queues text[], p_tasks text[], p_lane text,
    p_source text, p_created_after timestamptz, p_created_before timestamptz, p_key text,
    p_limit integer
)
RETURNS SETOF every_job
LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT * FROM (
        (SELECT * FROM unfinished_job e
        WHERE p_unfinished AND e.parent IS NOT NULL AND (p_parent IS NULL OR e.parent = p_parent)
            AND (p_group IS NULL OR e.child_group = p_group)
            AND (p_before IS NULL OR e.id < p_before) OFFSET 0)
        UNION ALL
        (SELECT * FROM finished_job e
        WHERE p_finished AND e.parent IS NOT NULL AND (p_parent IS NULL OR e.parent = p_parent)
            AND (p_group IS NULL OR e.child_group = p_group)
            AND (p_before IS NULL OR e.id < p_before) OFFSET 0)
    ) e
    WHERE (p_states IS NULL OR e.state = ANY (p_states))
        AND (p_queues IS NULL OR e.queue = ANY (p_queues))
        AND (p_tasks IS NULL OR e.task = ANY (p_tasks))
        AND (p_lane IS NULL OR e.lane = p_lane)
        AND (p_source IS NULL OR e.source = p_source)
        AND (p_created_after IS NULL OR e.created_at >= p_created_after)
        AND (p_created_before IS NULL OR e.created_at < p_created_before)
        AND (p_key IS NULL OR e.key = p_key)
    ORDER BY e.id DESC LIMIT p_limit;
END $$;
