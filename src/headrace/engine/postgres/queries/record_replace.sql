-- Write a record only if it still has the version. No row: it has not.
UPDATE record SET version = version + 1, body = $4,
    updated_at = clock_timestamp() + $1::double precision * interval '1 second'
WHERE kind = $2 AND key = $3 AND version = $5
RETURNING kind, key, version, body, updated_at
