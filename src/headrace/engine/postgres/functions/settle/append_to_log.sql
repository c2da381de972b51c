-- A job's attempt log with one more line, bounded: the oldest go first.
CREATE OR REPLACE FUNCTION append_to_log(p_log bytea, p_entry bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT substring(grown.log FROM greatest(1, octet_length(grown.log) - 262144 + 1))
    FROM (SELECT coalesce(p_log, '') || p_entry || '\x0a'::bytea AS log) grown
$$;
