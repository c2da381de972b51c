-- Store one job without key, lane and parent; see migrations/0006_insert_alike.sql.
SELECT insert_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
