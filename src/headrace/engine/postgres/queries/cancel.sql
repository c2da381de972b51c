-- Cancel jobs; see migrations/0009_steering.sql.
SELECT id::text, cancelled FROM cancel_jobs($1, $2, $3)
