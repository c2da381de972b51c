-- Write a record whatever is there.
INSERT INTO record AS r (kind, key, version, body, updated_at)
VALUES ($2, $3, 1, $4, clock_timestamp() + $1::double precision * interval '1 second')
ON CONFLICT (kind, key) DO UPDATE
    SET version = r.version + 1, body = EXCLUDED.body, updated_at = EXCLUDED.updated_at
RETURNING kind, key, version, body, updated_at
