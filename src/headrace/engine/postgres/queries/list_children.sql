-- A page of jobs that a job has made, the newest first; see migrations/0010_views.sql.
SELECT * FROM list_children($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
