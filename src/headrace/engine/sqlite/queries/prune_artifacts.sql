-- Leave word of pruned jobs that kept artifacts, so that somebody removes the files.
INSERT INTO record (kind, key, version, body, updated_at)
SELECT 'pruned-artifacts', asked.value, 1, CAST('{}' AS BLOB), ?2 FROM json_each(?1) AS asked
WHERE EXISTS (SELECT 1 FROM entry WHERE entry.job_id = asked.value AND entry.kind = 'artifact')
ON CONFLICT (kind, key) DO UPDATE SET version = version + 1, updated_at = excluded.updated_at;
