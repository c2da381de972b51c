-- Make scheduled jobs pending whose time has come; see migrations/0006_steering.sql and 0012.
SELECT * FROM due_jobs($1, $2)
