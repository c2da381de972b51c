-- Records of a kind by key, after a key.
SELECT kind, key, version, body, updated_at FROM record WHERE kind = $1 AND key > $2
ORDER BY key LIMIT $3
