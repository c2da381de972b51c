-- The server's time, in seconds since the epoch.
SELECT date_part('epoch', clock_timestamp())
