-- Run finished jobs again and scheduled ones now; see migrations/0006_steering.sql and 0012.
SELECT unnest(rerun_jobs($1, $2))::text
