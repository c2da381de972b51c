-- What the server tells about itself.
SELECT current_setting('server_version') AS version,
    (SELECT max(m.version) FROM migration m) AS schema_version,
    date_part('epoch', clock_timestamp()) AS now,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('autovacuum') AS autovacuum,
    current_setting('max_connections')::integer AS max_connections,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::integer
        AS connections,
    (SELECT date_part('epoch', clock_timestamp() - min(a.xact_start)) FROM pg_stat_activity a
     WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()) AS oldest_transaction
