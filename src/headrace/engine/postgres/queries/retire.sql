-- Let a worker take leave; see migrations/0006_steering.sql.
SELECT retire_worker($1, $2)
