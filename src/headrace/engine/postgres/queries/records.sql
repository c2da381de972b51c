-- Administrative records, each with a version that guards changes.

-- name: record_get
-- One record.
SELECT kind, key, version, body, updated_at FROM record WHERE kind = $1 AND key = $2

-- name: record_put
-- Write a record whatever is there.
INSERT INTO record AS r (kind, key, version, body, updated_at)
VALUES ($2, $3, 1, $4, clock_timestamp() + $1::double precision * interval '1 second')
ON CONFLICT (kind, key) DO UPDATE
    SET version = r.version + 1, body = EXCLUDED.body, updated_at = EXCLUDED.updated_at
RETURNING kind, key, version, body, updated_at

-- name: record_create
-- Write a record only if it does not exist. No row: it does.
INSERT INTO record (kind, key, version, body, updated_at)
VALUES ($2, $3, 1, $4, clock_timestamp() + $1::double precision * interval '1 second')
ON CONFLICT DO NOTHING
RETURNING kind, key, version, body, updated_at

-- name: record_replace
-- Write a record only if it still has the version. No row: it has not.
UPDATE record SET version = version + 1, body = $4,
    updated_at = clock_timestamp() + $1::double precision * interval '1 second'
WHERE kind = $2 AND key = $3 AND version = $5
RETURNING kind, key, version, body, updated_at

-- name: record_delete
-- Delete a record, if it has the version (NULL: any). Returns whether it did, and whether it existed.
WITH found AS (
    SELECT version FROM record WHERE kind = $1 AND key = $2
), gone AS (
    DELETE FROM record
    WHERE kind = $1 AND key = $2 AND ($3::bigint IS NULL OR version = $3)
    RETURNING version
)
SELECT EXISTS (SELECT FROM gone), EXISTS (SELECT FROM found)

-- name: record_list
-- Records of a kind by key, after a key.
SELECT kind, key, version, body, updated_at FROM record WHERE kind = $1 AND key > $2
ORDER BY key LIMIT $3
