-- Record what running attempts tell. Each (job, token) comes once; only the one under which the job
-- runs can match. The entries come with the id and token of their note. Returns the notes that
-- were taken, by their number. The jobs are locked before entries are written, which are kept only
-- for those that are seen to run then: no attempt writes an entry after it was lost.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION note_jobs(
    p_offset double precision,
    p_id uuid[], p_token integer[], p_stage text[], p_progress double precision[],
    p_message text[],
    p_entry_job uuid[], p_entry_token integer[], p_kind text[], p_name text[], p_body bytea[]
)
RETURNS integer[]
LANGUAGE plpgsql
-- include: look_up
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    taken integer[];
BEGIN
    IF cardinality(p_id) > 1 THEN
        PERFORM FROM unnest(p_id, p_token) AS t (id, token)
        JOIN job j ON j.id = ANY (ARRAY[t.id]) AND j.token = t.token
        WHERE j.state + 0 = 3
        ORDER BY j.lane IS NOT NULL, j.id FOR NO KEY UPDATE OF j;
    END IF;
    WITH taken AS (
        UPDATE job j SET stage = coalesce(t.stage, j.stage),
            progress = coalesce(t.progress, j.progress), message = coalesce(t.message, j.message)
        FROM unnest(p_id, p_token, p_stage, p_progress, p_message)
            WITH ORDINALITY AS t (id, token, stage, progress, message, ordinal)
        WHERE j.id = ANY (ARRAY[t.id]) AND j.token = t.token AND j.state + 0 = 3
        RETURNING t.ordinal
    )
    SELECT array_agg(t.ordinal::integer) INTO taken FROM taken t;
    IF cardinality(taken) > 0 AND cardinality(p_entry_job) > 0 THEN
        INSERT INTO entry (job_id, token, kind, name, body, at)
        SELECT e.job_id, e.token, e.kind, e.name, e.body, moment
        FROM unnest(p_entry_job, p_entry_token, p_kind, p_name, p_body)
            WITH ORDINALITY AS e (job_id, token, kind, name, body, ordinal)
        JOIN job j ON j.id = ANY (ARRAY[e.job_id]) AND j.token = e.token
        WHERE j.state + 0 = 3
        ORDER BY e.ordinal
        ON CONFLICT (job_id, kind, name) DO UPDATE
            SET body = EXCLUDED.body, token = EXCLUDED.token, at = EXCLUDED.at;
    END IF;
    RETURN coalesce(taken, '{}');
END $$;
