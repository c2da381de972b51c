-- The lanes of such jobs, each once, with how many of them are in it; and how many are in none.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION lanes_of_running(
    p_id uuid[], p_token integer[],
    OUT queues text[], OUT lanes text[], OUT widths integer[], OUT lane_jobs integer[],
    OUT unlaned integer
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(x.queue) FILTER (WHERE x.lane IS NOT NULL),
        array_agg(x.lane) FILTER (WHERE x.lane IS NOT NULL),
        array_agg(x.width) FILTER (WHERE x.lane IS NOT NULL),
        array_agg(x.jobs) FILTER (WHERE x.lane IS NOT NULL),
        coalesce(sum(x.jobs) FILTER (WHERE x.lane IS NULL), 0)
    INTO queues, lanes, widths, lane_jobs, unlaned
    FROM (
        SELECT j.queue, j.lane, max(j.width) AS width, count(*)::integer AS jobs
        FROM unnest(p_id, p_token) AS t (id, token)
        JOIN job j ON j.id = ANY (ARRAY[t.id]) AND j.token = t.token
        WHERE j.state + 0 = 3
        GROUP BY j.queue, j.lane
    ) x;
END $$;
