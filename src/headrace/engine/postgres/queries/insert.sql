-- Storing jobs.

-- name: insert
-- Store jobs in one transaction; see functions/insert/insert_jobs.sql.
SELECT * FROM insert_jobs(
    p_offset => $1, p_id => $2, p_args => $3, p_task => $4, p_queue => $5, p_priority => $6,
    p_delay => $7, p_run_at => $8, p_key => $9, p_lane => $10, p_width => $11, p_hold => $12,
    p_max_attempts => $13, p_timeout => $14, p_fail_on_crash => $15, p_source => $16,
    p_meta => $17, p_parent => $18, p_group => $19, p_expires_at => $20, p_expires_in => $21,
    p_rate => $22
)

-- name: insert_one
-- Store one job without key, lane and parent; see functions/insert/insert_one.sql.
SELECT insert_one(
    p_offset => $1, p_id => $2, p_args => $3, p_task => $4, p_queue => $5, p_priority => $6,
    p_delay => $7, p_run_at => $8, p_width => $9, p_hold => $10, p_max_attempts => $11,
    p_timeout => $12, p_fail_on_crash => $13, p_source => $14, p_meta => $15
)

-- name: insert_alike
-- Store jobs that are alike in nearly everything; see functions/insert/insert_alike.sql.
SELECT * FROM insert_alike(
    p_offset => $1, p_id => $2, p_args => $3, p_key => $4, p_meta => $5, p_task => $6,
    p_queue => $7, p_priority => $8, p_delay => $9, p_run_at => $10, p_width => $11, p_hold => $12,
    p_max_attempts => $13, p_timeout => $14, p_fail_on_crash => $15, p_source => $16
)

-- name: insert_and_record
-- Change a record and store jobs in one transaction; see functions/insert/insert_jobs_and_record.sql.
SELECT * FROM insert_jobs_and_record(
    p_record_kind => $1, p_record_key => $2, p_record_body => $3, p_record_version => $4,
    p_offset => $5, p_id => $6, p_args => $7, p_task => $8, p_queue => $9, p_priority => $10,
    p_delay => $11, p_run_at => $12, p_key => $13, p_lane => $14, p_width => $15, p_hold => $16,
    p_max_attempts => $17, p_timeout => $18, p_fail_on_crash => $19, p_source => $20,
    p_meta => $21, p_parent => $22, p_group => $23, p_expires_at => $24, p_expires_in => $25,
    p_rate => $26
)

-- name: insert_by_policy
-- Store a job, and do what it says to others; see functions/insert/insert_by_policy.sql.
SELECT stored::text, created, cancelled::text[], stopping::text[] FROM insert_by_policy(
    p_offset => $1, p_on_duplicate => $2, p_window => $3, p_max_wait => $4, p_when_full => $5,
    p_reason => $6, p_id => $7, p_args => $8, p_task => $9, p_queue => $10, p_priority => $11,
    p_delay => $12, p_run_at => $13, p_key => $14, p_lane => $15, p_width => $16, p_hold => $17,
    p_max_attempts => $18, p_timeout => $19, p_fail_on_crash => $20, p_source => $21,
    p_meta => $22, p_parent => $23, p_group => $24, p_expires_at => $25, p_expires_in => $26,
    p_rate => $27
)

-- name: ensure_queues
-- Remember that queues are used, and when, to the hour: no write for each job. In a transaction of its own.
INSERT INTO queue AS q (name, used_at)
SELECT n.name, clock_timestamp() + $1::double precision * interval '1 second'
FROM unnest($2::text[]) AS n (name) ORDER BY n.name
ON CONFLICT (name) DO UPDATE SET used_at = EXCLUDED.used_at
WHERE q.used_at NOT BETWEEN EXCLUDED.used_at - interval '1 hour'
    AND EXCLUDED.used_at + interval '1 hour'
