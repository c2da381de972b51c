-- Delete finished jobs, the oldest first, with their keys and entries: those older than $2 seconds
-- and those beyond the newest $3. Several callers share the work: each skips what another deletes.
-- Those whose parent stays are spared. Of those that kept artifacts a record tells.
WITH edge AS MATERIALIZED (
    -- The last one that goes.
    SELECT b.completed_at, b.id
    FROM (
        SELECT clock_timestamp() + ($1::double precision - $2::double precision)
                * interval '1 second' AS completed_at,
            'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid AS id
        WHERE $2 IS NOT NULL
        UNION ALL
        (SELECT k.completed_at, k.id FROM history k WHERE $3::bigint IS NOT NULL
         ORDER BY k.completed_at DESC, k.id DESC OFFSET $3::bigint LIMIT 1)
    ) b
    ORDER BY b.completed_at DESC, b.id DESC LIMIT 1
), doomed AS MATERIALIZED (
    SELECT h.id FROM history h
    WHERE (h.completed_at, h.id) <= (SELECT e.completed_at, e.id FROM edge e)
        -- Not NOT EXISTS, for which the planner may read all jobs first.
        AND (h.parent IS NULL OR (
            -- A parent stays that has not finished, is not old enough, or whose own parent stays.
            WITH RECURSIVE above (id) AS (
                SELECT h.parent
                UNION
                SELECT p.parent FROM above a JOIN history p ON p.id = a.id
                WHERE p.parent IS NOT NULL
            )
            SELECT a.id FROM above a
            WHERE (SELECT j.id FROM job j WHERE j.id = a.id) IS NOT NULL
                OR (SELECT (p.completed_at, p.id) > (SELECT e.completed_at, e.id FROM edge e)
                    FROM history p WHERE p.id = a.id)
            LIMIT 1
        ) IS NULL)
    ORDER BY h.completed_at, h.id LIMIT $4::integer
    FOR UPDATE OF h SKIP LOCKED
), gone AS (
    DELETE FROM history WHERE id = ANY (ARRAY(SELECT id FROM doomed))
    RETURNING id, task, key
), keys AS (
    DELETE FROM job_key k USING gone g
    WHERE k.key = g.key AND k.task = g.task AND k.job_id = g.id
), entries AS (
    DELETE FROM entry WHERE job_id = ANY (ARRAY(SELECT id FROM doomed))
    RETURNING job_id, kind
), records AS (
    INSERT INTO record AS r (kind, key, version, body, updated_at)
    SELECT 'pruned-artifacts', e.job_id::text, 1, '{}',
        clock_timestamp() + $1::double precision * interval '1 second'
    FROM (SELECT DISTINCT job_id FROM entries WHERE kind = 'artifact') e ORDER BY e.job_id
    ON CONFLICT (kind, key) DO UPDATE
        SET version = r.version + 1, updated_at = EXCLUDED.updated_at
)
SELECT count(*)::integer FROM gone
