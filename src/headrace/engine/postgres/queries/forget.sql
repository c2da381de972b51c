-- Remove entries of a finished job. False: it is unknown or has not finished. The lock keeps it from
-- being run again meanwhile.
WITH finished AS MATERIALIZED (
    SELECT id FROM history WHERE id = $1 FOR KEY SHARE
), gone AS (
    DELETE FROM entry e USING finished f, unnest($2::text[], $3::text[]) AS n (kind, name)
    WHERE e.job_id = f.id AND e.kind = n.kind AND e.name = n.name
)
SELECT EXISTS (SELECT FROM finished)
