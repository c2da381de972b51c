-- The newest schema version that a worker's program knows; NULL: it did not say. It tells who is left
-- to be upgraded before a migration that refuses older programs.
-- Older programs go on working: they name the columns that they write and read.
ALTER TABLE worker ADD COLUMN schema_version integer;
