-- Change a record and store jobs in one transaction; see migrations/0005_insert.sql.
SELECT * FROM insert_jobs_and_record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
    $16, $17, $18, $19, $20, $21, $22, $23)
