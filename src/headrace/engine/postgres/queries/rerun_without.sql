-- Remove entries of a finished job that has this token. False: it is unknown, has not finished, or was
-- run again since. The lock keeps others from running it again: rerun.sql follows in the transaction.
WITH finished AS MATERIALIZED (
    SELECT id FROM history WHERE id = $1 AND token = $2 FOR UPDATE
), gone AS (
    DELETE FROM entry e USING finished f, unnest($3::text[], $4::text[]) AS n (kind, name)
    WHERE e.job_id = f.id AND e.kind = n.kind AND e.name = n.name
)
SELECT EXISTS (SELECT FROM finished)
