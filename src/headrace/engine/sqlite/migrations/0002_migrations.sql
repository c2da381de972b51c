-- Which migrations have been applied, and when. Older programs do not use this table: they go on
-- working, because `PRAGMA user_version`, the lowest version a program must know, stays as it is.
CREATE TABLE migration (
    version INTEGER PRIMARY KEY,
    applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO migration (version) VALUES (1);
