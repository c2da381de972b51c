-- Which programs may use the store, and the functions of each.
-- min_program: 11
-- Numbers 2 to 10 stood for functions, which are not part of migrations any more.

-- The lowest schema version that a program must know to use the store; NULL: no new limit.
ALTER TABLE migration ADD COLUMN min_program integer;

-- Sets of functions: each program installs its own, under names that end in `hash`.
-- `schema_version` is the newest that a program with this set is known to know.
CREATE TABLE function_set (
    hash text COLLATE "C" PRIMARY KEY,
    schema_version integer NOT NULL,
    program text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT now()
);

-- Functions of programs that knew at most version 10: all that are here now.
DO $$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN
        SELECT p.oid FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = quote_ident(current_schema())::regnamespace
    LOOP
        EXECUTE format('DROP FUNCTION %s', old);
    END LOOP;
END $$;
