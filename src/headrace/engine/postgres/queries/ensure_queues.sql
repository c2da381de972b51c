-- Remember that queues are used, and when, to the hour: no write for each job. In a transaction of its own.
INSERT INTO queue AS q (name, used_at)
SELECT n.name, clock_timestamp() + $1::double precision * interval '1 second'
FROM unnest($2::text[]) AS n (name) ORDER BY n.name
ON CONFLICT (name) DO UPDATE SET used_at = EXCLUDED.used_at
WHERE q.used_at NOT BETWEEN EXCLUDED.used_at - interval '1 hour'
    AND EXCLUDED.used_at + interval '1 hour'
