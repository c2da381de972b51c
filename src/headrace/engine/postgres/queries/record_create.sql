-- Write a record only if it does not exist. No row: it does.
INSERT INTO record (kind, key, version, body, updated_at)
VALUES ($2, $3, 1, $4, clock_timestamp() + $1::double precision * interval '1 second')
ON CONFLICT DO NOTHING
RETURNING kind, key, version, body, updated_at
