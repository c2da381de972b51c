-- Deliver an event to a job; see migrations/0008_due.sql.
SELECT signal_job($1, $2, $3, $4)
