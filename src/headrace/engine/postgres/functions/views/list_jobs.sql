-- Find jobs, the newest first; NULL leaves a condition out. Returns the ids of those that match. A row
-- that has `reached` instead says that there may be others: they have lower ids than that.
--
-- Unfinished and finished jobs are walked along their ids side by side, no further than the page needs
-- and than `p_look` jobs of the states asked for. Where no asked state is found nobody looks. Jobs of
-- other states on the way are passed over, up to as many again; not among unsuccessful ones, where an
-- index knows each state. Without `p_look` there is no bound, and no row that says `reached`.
--
-- What an index knows another way is looked up first (`live` in `job`, `done` in `history`): jobs with
-- a key, children, those that finished within some time, and unfinished ones of states that are rare,
-- while there may be many of the others. If they turn out to be many, the walk meets them.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION list_jobs(
    p_unfinished boolean, p_unsuccessful boolean, p_completed boolean, p_before uuid,
    p_states smallint[], p_queues text[], p_tasks text[], p_lane text, p_source text,
    p_created_after timestamptz, p_created_before timestamptz, p_error_types text[], p_worker text,
    p_finished_after timestamptz, p_finished_before timestamptz,
    p_key text, p_parent uuid, p_group text, p_limit integer, p_look integer
)
RETURNS TABLE (job_id uuid, reached uuid)
LANGUAGE plpgsql STABLE
-- include: list_plan
AS $$
#variable_conflict use_column
DECLARE
    most bigint := p_look;
    walk bigint := 2 * most;
    live uuid[]; live_walk bigint := walk;
    done uuid[]; done_walk bigint := walk;
BEGIN
    IF p_look IS NULL THEN
        RETURN QUERY
        SELECT page.id, NULL::uuid
        FROM (
            (
                SELECT e.id FROM unfinished_job e
                WHERE p_unfinished AND (p_before IS NULL OR e.id < p_before)
                    AND (p_states IS NULL OR e.state = ANY (p_states)) AND
                    -- include: job_fits
                ORDER BY e.id DESC LIMIT p_limit
            )
            UNION ALL
            (
                SELECT e.id FROM
                    -- include: unsuccessful_jobs
                WHERE p_unsuccessful AND NOT p_completed AND (p_before IS NULL OR e.id < p_before) AND
                    -- include: job_fits
                ORDER BY e.id DESC LIMIT p_limit
            )
            UNION ALL
            (
                SELECT e.id FROM finished_job e
                WHERE p_completed AND (p_before IS NULL OR e.id < p_before)
                    AND (p_states IS NULL OR e.state = ANY (p_states)) AND
                    -- include: job_fits
                ORDER BY e.id DESC LIMIT p_limit
            )
        ) page
        ORDER BY page.id DESC LIMIT p_limit;
        RETURN;
    END IF;
    IF p_key IS NOT NULL THEN
        live := ARRAY(SELECT k.job_id FROM job_key k WHERE k.key = p_key);
        done := live;
    ELSIF p_parent IS NOT NULL THEN
        live := ARRAY(
            SELECT j.id FROM job j
            WHERE p_unfinished AND j.parent = p_parent
                AND (p_group IS NULL OR j.child_group = p_group)
            LIMIT walk + 1
        );
        -- In the order of the index on parents, whatever the planner thinks of the one on ids.
        done := ARRAY(
            SELECT h.id FROM history h
            WHERE (p_unsuccessful OR p_completed) AND h.parent BETWEEN p_parent AND p_parent
                AND (p_before IS NULL OR h.id < p_before)
            ORDER BY h.parent DESC, h.id DESC LIMIT most + 1
        );
    ELSE
        IF p_unfinished AND NOT p_states @> '{0,1,2,3}' AND (
            -- Rare among the newest, at least.
            SELECT 2 * count(*) FILTER (WHERE x.state = ANY (p_states)) < count(*)
            FROM (
                SELECT j.state FROM job j WHERE p_before IS NULL OR j.id < p_before
                ORDER BY j.id DESC LIMIT least(most, 200)
            ) x
        ) THEN
            live := ARRAY(
                SELECT j.id FROM job j WHERE 0 = ANY (p_states) AND j.state = 0
                UNION ALL
                SELECT j.id FROM job j WHERE 1 = ANY (p_states) AND j.state = 1
                UNION ALL
                SELECT j.id FROM job j WHERE 2 = ANY (p_states) AND j.state = 2 AND NOT j.reserved
                UNION ALL
                SELECT j.id FROM job j WHERE 2 = ANY (p_states) AND j.state = 2 AND j.reserved
                UNION ALL
                SELECT j.id FROM job j WHERE 3 = ANY (p_states) AND j.state = 3
                LIMIT most + 1
            );
        END IF;
        IF p_finished_after IS NOT NULL OR p_finished_before IS NOT NULL THEN
            done := ARRAY(
                SELECT h.id FROM history h
                WHERE (p_finished_after IS NULL OR h.completed_at >= p_finished_after)
                    AND (p_finished_before IS NULL OR h.completed_at < p_finished_before)
                ORDER BY h.completed_at DESC LIMIT walk + 1
            );
        END IF;
    END IF;
    IF cardinality(live) > (CASE WHEN p_parent IS NULL THEN most ELSE walk END) THEN
        live := NULL;
    ELSIF live IS NOT NULL THEN
        live := newest_ids(live, p_before, most + 1);
        live_walk := most;
    END IF;
    IF cardinality(done) > walk THEN
        done := NULL;
    ELSIF done IS NOT NULL THEN
        done := newest_ids(done, p_before, most + 1);
        done_walk := most;
    END IF;
    RETURN QUERY
    SELECT CASE WHEN found.fits THEN found.id END, CASE WHEN found.beyond THEN found.previous END
    FROM (
        SELECT met.id, met.previous, met.walked > met.walk OR met.number > most AS beyond,
            met.asked AND met.fits AND met.walked <= met.walk AND met.number <= most AS fits
        FROM (
            SELECT part.*, count(*) FILTER (WHERE part.asked) OVER newest AS number,
                lag(part.id) OVER newest AS previous
            FROM (
                (
                    -- include: listed_jobs
                    -- include: job_fits
                    AS fits, live_walk AS walk
                    FROM unfinished_job e
                    WHERE p_unfinished
                        AND (live IS NULL OR e.id = ANY (live))
                        AND (p_before IS NULL OR e.id < p_before)
                    ORDER BY e.id DESC LIMIT live_walk + 1
                )
                UNION ALL
                (
                    -- include: listed_jobs
                    -- include: job_fits
                    AS fits, most AS walk
                    FROM
                        -- include: unsuccessful_jobs
                    WHERE p_unsuccessful AND NOT p_completed
                        AND (done IS NULL OR e.id = ANY (done))
                        AND (p_before IS NULL OR e.id < p_before)
                    ORDER BY e.id DESC LIMIT most + 1
                )
                UNION ALL
                (
                    -- include: listed_jobs
                    -- include: job_fits
                    AS fits, done_walk AS walk
                    FROM finished_job e
                    WHERE p_completed
                        AND (done IS NULL OR e.id = ANY (done))
                        AND (p_before IS NULL OR e.id < p_before)
                    ORDER BY e.id DESC LIMIT done_walk + 1
                )
            ) part
            -- The last one of a walk is kept: it is where to go on.
            WHERE part.asked OR part.walked >= part.walk
            WINDOW newest AS (ORDER BY part.id DESC ROWS UNBOUNDED PRECEDING)
            -- One more than may be looked at, besides the last ones of three walks.
            ORDER BY part.id DESC LIMIT most + 7
        ) met
    ) found
    WHERE found.fits OR found.beyond
    ORDER BY found.id DESC LIMIT p_limit;
END $$;
