-- A page of jobs, the newest first; NULL leaves a condition out. Both tables are walked along their
-- primary keys and merged, so a page costs as many rows as it has to look at, however many there are.
SELECT * FROM every_job
WHERE ($1::uuid IS NULL OR id < $1)
    AND ($2::smallint[] IS NULL OR state = ANY ($2))
    AND ($3::text[] IS NULL OR queue = ANY ($3))
    AND ($4::text[] IS NULL OR task = ANY ($4))
    AND ($5::text IS NULL OR lane = $5)
    AND ($6::text IS NULL OR source = $6)
    AND ($7::timestamptz IS NULL OR created_at >= $7)
    AND ($8::timestamptz IS NULL OR created_at < $8)
    AND ($9::text IS NULL OR id = ANY (ARRAY(SELECT job_id FROM job_key WHERE key = $9)))
ORDER BY id DESC LIMIT $10
