-- Set the width and the used places of one lane. The caller has read them in the same transaction.
INSERT INTO lane (queue, lane, width, used) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (queue, lane) DO UPDATE SET width = excluded.width, used = excluded.used;
