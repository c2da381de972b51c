-- Change a record, guarded like record_put.sql, record_create.sql and record_replace.sql. False: it
-- has another version.
CREATE OR REPLACE FUNCTION change_record(
    p_offset double precision, p_kind text, p_key text, p_body bytea, p_version bigint
)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
BEGIN
    IF p_version > 0 THEN
        UPDATE record SET version = version + 1, body = p_body, updated_at = moment
        WHERE kind = p_kind AND key = p_key AND version = p_version;
    ELSE
        INSERT INTO record AS r (kind, key, version, body, updated_at)
        VALUES (p_kind, p_key, 1, p_body, moment)
        ON CONFLICT (kind, key) DO UPDATE
            SET version = r.version + 1, body = EXCLUDED.body, updated_at = EXCLUDED.updated_at
            WHERE p_version IS NULL;
    END IF;
    RETURN FOUND;
END $$;
