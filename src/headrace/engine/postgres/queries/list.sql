-- A page of jobs, the newest first; see migrations/0010_views.sql.
SELECT * FROM list_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
