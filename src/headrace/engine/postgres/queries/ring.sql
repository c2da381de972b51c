-- Tell all workers that jobs are ready. Nothing is lost if the server forgets it in a crash, so it
-- need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify(current_schema(), 'work')
