-- Make queues known, in a transaction of their own: claims look for jobs in known queues only.
INSERT INTO queue (name) SELECT n.name FROM unnest($1::text[]) AS n (name) ORDER BY n.name
ON CONFLICT DO NOTHING
