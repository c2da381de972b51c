-- One record.
SELECT kind, key, version, body, updated_at FROM record WHERE kind = $1 AND key = $2
