-- Which migrations have been applied, and when.
CREATE TABLE migration (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)
