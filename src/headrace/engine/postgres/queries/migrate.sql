-- Bringing the schema up to date.

-- name: migrate_lock
-- Let one process at a time migrate this schema; held until its transaction ends.
SELECT pg_advisory_xact_lock(hashtext('headrace migration'), hashtext($1))

-- name: schema_exists
-- CREATE SCHEMA IF NOT EXISTS asks for a right on the database even where the schema is there.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)

-- name: create_migration
-- Which migrations have been applied, and when.
CREATE TABLE migration (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: migration_exists
-- Whether the schema has been migrated at all.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'migration'
)

-- name: newest_migration
-- The version of the schema.
SELECT coalesce(max(version), 0) FROM migration

-- name: add_migration
-- Note that a migration has been applied, in the transaction that applied it.
INSERT INTO migration (version) VALUES ($1)
