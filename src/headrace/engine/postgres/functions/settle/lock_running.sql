-- Lock such jobs in the order of ids. Where more than one statement follows, this comes first: two
-- statements, each in that order, are together in none.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION lock_running(p_laned boolean, p_id uuid[], p_token integer[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM unnest(p_id, p_token) AS t (id, token)
    JOIN job j ON j.id = ANY (ARRAY[t.id]) AND j.token = t.token
    WHERE j.state + 0 = 3 AND (j.lane IS NOT NULL) = p_laned
    ORDER BY t.id FOR UPDATE OF j;
END $$;
