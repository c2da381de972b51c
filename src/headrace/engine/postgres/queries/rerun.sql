-- Run finished jobs again and scheduled ones now; see migrations/0009_steering.sql.
SELECT unnest(rerun_jobs($1, $2))::text
