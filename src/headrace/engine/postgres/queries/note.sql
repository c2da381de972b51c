-- Record what running attempts tell; see migrations/0003_settle.sql.
SELECT note_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
