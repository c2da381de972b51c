-- Let a worker take leave; see migrations/0009_steering.sql.
SELECT retire_worker($1, $2)
