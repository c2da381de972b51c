-- Record outcomes and lease ready jobs in one transaction; see migrations/0004_exchange.sql.
SELECT * FROM exchange($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
    $16, $17, $18)
