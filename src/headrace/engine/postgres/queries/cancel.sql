-- Cancel jobs; see migrations/0006_steering.sql and 0012.
SELECT id::text, cancelled FROM cancel_jobs($1, $2, $3)
