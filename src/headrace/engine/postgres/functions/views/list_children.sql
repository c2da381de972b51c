-- A page of children, the newest first; NULL leaves a condition out. All of a parent's are read
-- along the indexes on parent before they are sorted (OFFSET 0 keeps the planner from anything
-- else): walking along ids until enough of them were met would be a walk over all jobs.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION list_children(
    p_parent uuid, p_group text, p_unfinished boolean, p_finished boolean,
    -- include: list_parameters
)
RETURNS SETOF every_job
LANGUAGE plpgsql STABLE
-- include: list_plan
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
    WHERE true
        -- include: job_filter
        AND (p_key IS NULL OR e.key = p_key)
    ORDER BY e.id DESC LIMIT p_limit;
END $$;
