-- Let one process at a time migrate this schema; held until its transaction ends.
SELECT pg_advisory_xact_lock(hashtext('headrace migration'), hashtext($1))
