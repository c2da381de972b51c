-- Small administrative records, each with a version.

-- name: record_put
-- Write a record; the version grows by one. The caller has checked the version it expects in the
-- same transaction.
INSERT INTO record (kind, key, version, body, updated_at) VALUES (?, ?, 1, ?, ?)
ON CONFLICT (kind, key) DO UPDATE SET
    version = version + 1, body = excluded.body, updated_at = excluded.updated_at
RETURNING kind, key, version, body, updated_at;

-- name: record_delete
-- Delete a record whose version the caller has checked in the same transaction.
DELETE FROM record WHERE kind = ? AND key = ?;

-- name: record_get
-- One record.
SELECT kind, key, version, body, updated_at FROM record WHERE kind = ? AND key = ?;

-- name: record_list
-- Records of a kind by key, after a key.
SELECT kind, key, version, body, updated_at FROM record
WHERE kind = ? AND key > ?
ORDER BY key
LIMIT ?;
