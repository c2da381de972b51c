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

-- name: what_exists
-- Whether the schema has been migrated at all, how many of these functions it has, and whether this
-- user may look into it.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'migration'
) AS migrated, (
    SELECT count(DISTINCT p.proname) FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = $1 AND p.proname = ANY ($2::name[])
) AS functions, coalesce((
    SELECT has_schema_privilege(n.oid, 'USAGE') FROM pg_catalog.pg_namespace n WHERE n.nspname = $1
), true) AS usable

-- name: schema_version
-- The version of the schema, and the lowest that a program must know. Read as JSON, because schemas
-- before version 11 have no such column: each of their versions was for programs that know it.
SELECT coalesce(max(m.version), 0) AS version,
    coalesce(max((to_jsonb(m) ->> 'min_program')::integer), max(m.version), 0) AS min_program
FROM migration m

-- name: add_migration
-- Note that a migration has been applied, in the transaction that applied it.
INSERT INTO migration (version) VALUES ($1)

-- name: raise_min_program
-- Only programs that know version $2 may use the store after migration $1.
UPDATE migration SET min_program = $2 WHERE version = $1

-- name: add_function_set
-- Note that a set of functions is installed, or that a newer program uses it, too.
INSERT INTO function_set AS f (hash, schema_version, program) VALUES ($1, $2, $3)
ON CONFLICT (hash) DO UPDATE
    SET schema_version = greatest(f.schema_version, EXCLUDED.schema_version),
        program = EXCLUDED.program

-- name: refused_functions
-- Functions of programs that know no version from $1 on, except those of the set $2.
SELECT p.oid::regprocedure::text AS function
FROM function_set f
JOIN pg_catalog.pg_proc p ON right(p.proname, 9) = '_' || f.hash
WHERE f.schema_version < $1 AND f.hash <> $2
    AND p.pronamespace = quote_ident(current_schema())::regnamespace
ORDER BY 1

-- name: forget_function_sets
-- Forget their sets.
DELETE FROM function_set WHERE schema_version < $1 AND hash <> $2
