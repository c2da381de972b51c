-- CREATE SCHEMA IF NOT EXISTS asks for a right on the database even where the schema is there.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)
