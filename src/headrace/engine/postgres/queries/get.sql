-- Jobs by id, wherever they are: one snapshot, so a job that is just finishing is seen once.
SELECT * FROM every_job WHERE id = ANY ($1::uuid[])
