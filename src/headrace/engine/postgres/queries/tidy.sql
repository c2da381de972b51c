-- Clear dead rows and index entries away. Locks nothing that anybody waits for: it is skipped where
-- the server is doing the same, or where the user does not own the table, and gives no space back
-- to the disk, which would need an exclusive lock.
VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) job
