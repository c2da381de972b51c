-- Delete a record, if it has the version (NULL: any). Answers whether it did, and whether it existed.
WITH found AS (
    SELECT version FROM record WHERE kind = $1 AND key = $2
), gone AS (
    DELETE FROM record
    WHERE kind = $1 AND key = $2 AND ($3::bigint IS NULL OR version = $3)
    RETURNING version
)
SELECT EXISTS (SELECT FROM gone), EXISTS (SELECT FROM found)
