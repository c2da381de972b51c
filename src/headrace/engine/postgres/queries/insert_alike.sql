-- Store jobs that are alike in nearly everything; see migrations/0006_insert_alike.sql.
SELECT * FROM insert_alike($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
