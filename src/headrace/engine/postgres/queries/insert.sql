-- Storing jobs.

-- name: insert
-- Store jobs in one transaction; see functions/insert/insert_jobs.sql.
SELECT * FROM insert_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
    $18, $19)

-- name: insert_one
-- Store one job without key, lane and parent; see functions/insert/insert_one.sql.
SELECT insert_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)

-- name: insert_alike
-- Store jobs that are alike in nearly everything; see functions/insert/insert_alike.sql.
SELECT * FROM insert_alike($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: insert_and_record
-- Change a record and store jobs in one transaction; see functions/insert/insert_jobs_and_record.sql.
SELECT * FROM insert_jobs_and_record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
    $16, $17, $18, $19, $20, $21, $22, $23)

-- name: ensure_queues
-- Remember that queues are used, and when, to the hour: no write for each job. In a transaction of its own.
INSERT INTO queue AS q (name, used_at)
SELECT n.name, clock_timestamp() + $1::double precision * interval '1 second'
FROM unnest($2::text[]) AS n (name) ORDER BY n.name
ON CONFLICT (name) DO UPDATE SET used_at = EXCLUDED.used_at
WHERE q.used_at NOT BETWEEN EXCLUDED.used_at - interval '1 hour'
    AND EXCLUDED.used_at + interval '1 hour'
