-- Cancel jobs that should have started by now and have not, the earliest first. One at a time in a store:
-- two would lock the same jobs. Returns them, and in how many seconds the next may be.
--
-- Entries of jobs that have started, or are gone, are met on the way: most of them, where most jobs start
-- in time. So a call looks at more entries than it may cancel jobs, but at no more than ten times as many.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION expire_jobs(p_offset double precision, p_limit integer, p_reason text)
RETURNS TABLE (ids uuid[], next_in double precision)
LANGUAGE plpgsql
-- include: look_up
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    alone boolean := expire_alone();
    seen uuid[]; unstarted uuid[]; started uuid[];
BEGIN
    ids := '{}';
    IF alone THEN
        SELECT array_agg(d.job_id),
            array_agg(d.job_id ORDER BY d.at) FILTER (WHERE d.state < 3 AND d.attempt = 0),
            array_agg(d.job_id) FILTER (WHERE d.state = 3 AND d.attempt = 1)
        INTO seen, unstarted, started
        FROM (
            SELECT x.job_id, x.at, j.state, j.attempt
            FROM (
                SELECT x.job_id, x.at FROM expiry x WHERE x.at <= moment AND NOT x.running
                ORDER BY x.at LIMIT 10::bigint * p_limit
            ) x
            LEFT JOIN LATERAL (
                SELECT j.state, j.attempt FROM job j WHERE j.id = x.job_id OFFSET 0
            ) j ON true
        ) d;
    END IF;
    IF seen IS NOT NULL THEN
        ids := expire_some(moment, seen, unstarted[:p_limit], started, p_reason);
    END IF;
    next_in := (
        SELECT greatest(date_part('epoch', x.at - moment),
            -- The transaction that ends those is over soon.
            CASE WHEN alone THEN 0 ELSE 0.1 END)
        FROM (
            SELECT x.job_id, x.at,
                row_number() OVER (ORDER BY x.at ROWS UNBOUNDED PRECEDING) AS number
            FROM expiry x WHERE NOT x.running
        ) x
        -- The first that can still expire, also if it has to be given back before; no further than so many.
        WHERE x.number = 500 OR (
            SELECT j.id FROM job j
            WHERE j.id = x.job_id AND j.attempt = CASE WHEN j.state = 3 THEN 1 ELSE 0 END
        ) IS NOT NULL
        ORDER BY x.at LIMIT 1
    );
    RETURN NEXT;
END $$;
