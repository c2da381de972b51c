-- A page of jobs, the newest first; NULL leaves a condition out. There are three places to look:
-- unfinished jobs, finished ones that did not complete, and completed ones. Those in which no
-- asked state is found are left alone; the others are walked along their index on id, each no
-- further than the page needs.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION list_jobs(
    p_unfinished boolean, p_unsuccessful boolean, p_completed boolean,
    -- include: list_parameters
)
RETURNS SETOF every_job
LANGUAGE plpgsql STABLE
-- include: list_plan
AS $$
#variable_conflict use_column
DECLARE
    -- Few jobs share a key, and an index knows them.
    ids uuid[] := CASE WHEN p_key IS NOT NULL
        THEN ARRAY(SELECT k.job_id FROM job_key k WHERE k.key = p_key) END;
BEGIN
    RETURN QUERY
    SELECT * FROM (
        (SELECT * FROM unfinished_job e
        WHERE p_unfinished
            AND (ids IS NULL OR e.id = ANY (ids))
            AND (p_before IS NULL OR e.id < p_before)
            -- include: job_filter
        ORDER BY e.id DESC LIMIT p_limit)
        UNION ALL
        (SELECT * FROM finished_job e
        WHERE p_unsuccessful AND e.state <> 4
            AND (ids IS NULL OR e.id = ANY (ids))
            AND (p_before IS NULL OR e.id < p_before)
            -- include: job_filter
        ORDER BY e.id DESC LIMIT p_limit)
        UNION ALL
        (SELECT * FROM finished_job e
        WHERE p_completed AND e.state = 4
            AND (ids IS NULL OR e.id = ANY (ids))
            AND (p_before IS NULL OR e.id < p_before)
            -- include: job_filter
        ORDER BY e.id DESC LIMIT p_limit)
    ) page
    ORDER BY id DESC LIMIT p_limit;
END $$;
