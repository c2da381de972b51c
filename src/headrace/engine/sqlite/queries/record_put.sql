-- Write a record; the version grows by one. The caller has checked the version it expects in the
-- same transaction.
INSERT INTO record (kind, key, version, body, updated_at) VALUES (?1, ?2, 1, ?3, ?4)
ON CONFLICT (kind, key) DO UPDATE SET
    version = version + 1, body = excluded.body, updated_at = excluded.updated_at
RETURNING kind, key, version, body, updated_at;
