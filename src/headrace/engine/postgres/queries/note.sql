-- Record what running attempts tell, guarded by their token. Each (job, token) comes once; only the
-- one under which the job runs can match. Answers the notes that were taken, by their number.
-- Rows are locked in the order of ids, so that two calls cannot wait for each other.
WITH now AS (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
), told AS MATERIALIZED (
    SELECT * FROM unnest($2::uuid[], $3::integer[], $4::text[], $5::double precision[], $6::text[])
        WITH ORDINALITY AS t (id, token, stage, progress, message, ordinal)
), taken AS (
    UPDATE job j SET stage = coalesce(t.stage, j.stage),
        progress = coalesce(t.progress, j.progress), message = coalesce(t.message, j.message)
    FROM told t
    WHERE j.id = t.id AND j.token = t.token AND j.state + 0 = 3
    RETURNING t.ordinal, t.id, t.token
), kept AS (
    INSERT INTO entry (job_id, token, kind, name, body, at)
    SELECT t.id, t.token, e.kind, e.name, e.body, now.moment
    FROM now, unnest($7::integer[], $8::text[], $9::text[], $10::bytea[])
        WITH ORDINALITY AS e (note, kind, name, body, ordinal)
    JOIN taken t ON t.ordinal = e.note
    ORDER BY e.ordinal
    ON CONFLICT (job_id, kind, name) DO UPDATE
        SET body = EXCLUDED.body, token = EXCLUDED.token, at = EXCLUDED.at
)
SELECT ordinal::integer FROM taken
