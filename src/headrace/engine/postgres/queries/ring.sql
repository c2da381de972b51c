-- Tell all workers that jobs are ready.
SELECT pg_notify(current_schema(), 'work')
