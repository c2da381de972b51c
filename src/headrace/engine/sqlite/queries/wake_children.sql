-- Whether more than ?2 children of a job are unfinished: one step into the index for each up to that
-- many, however many more there are.
SELECT 1 FROM job WHERE parent = ?1 LIMIT 1 OFFSET ?2;
