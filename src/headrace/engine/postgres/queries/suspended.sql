-- Jobs that are suspended, in the order of ids, after one of them.
SELECT id::text FROM job WHERE awaits IS NOT NULL AND id > $1 ORDER BY id LIMIT $2
