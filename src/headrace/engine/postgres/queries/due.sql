-- Make scheduled jobs pending whose time has come; see migrations/0008_due.sql.
SELECT * FROM due_jobs($1, $2)
