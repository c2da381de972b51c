-- Whether one of the things that a suspended job awaits has come about. Counts no further than it
-- has to: of ten thousand unfinished children it looks at one more than may be left.
CREATE OR REPLACE FUNCTION wait_is_over(p_id uuid, p_awaits jsonb)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT
        FROM jsonb_to_recordset(p_awaits) AS a (type text, name text, "group" text, "left" numeric)
        WHERE CASE
            WHEN a.type = 'event' THEN EXISTS (
                SELECT FROM entry e
                WHERE e.job_id = p_id AND e.kind = 'event' AND e.name = a.name
            )
            WHEN a."group" IS NULL THEN a."left" >= (
                SELECT count(*) FROM (
                    SELECT FROM job c WHERE c.parent = p_id
                    LIMIT least(a."left", 1000000000)::bigint + 1
                ) unfinished
            )
            ELSE a."left" >= (
                SELECT count(*) FROM (
                    SELECT FROM job c WHERE c.parent = p_id AND c.child_group = a."group"
                    LIMIT least(a."left", 1000000000)::bigint + 1
                ) unfinished
            )
        END
    );
END $$;
