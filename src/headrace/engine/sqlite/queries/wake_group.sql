-- Whether more than ?3 children of a job in one group are unfinished, as in wake_children.sql.
SELECT 1 FROM job WHERE parent = ?1 AND group_name = ?2 LIMIT 1 OFFSET ?3;
