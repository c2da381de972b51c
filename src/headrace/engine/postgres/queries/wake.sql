-- Make suspended jobs pending whose wait is over; see migrations/0008_due.sql.
SELECT unnest(wake_jobs($1, $2))::text
