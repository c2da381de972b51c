-- Remember that a queue has been used.
INSERT INTO queue (name) VALUES (?1) ON CONFLICT (name) DO NOTHING;
