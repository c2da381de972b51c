-- Deliver an event to a job. The lock lets it be claimed and given back, but not finish meanwhile.
CREATE OR REPLACE FUNCTION signal_job(
    p_offset double precision, p_id uuid, p_name text, p_body bytea
)
RETURNS text
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    now_token integer;
    unfinished boolean;
    answer text;
BEGIN
    LOOP
        SELECT j.token INTO now_token FROM job j WHERE j.id = p_id FOR KEY SHARE;
        IF FOUND THEN
            INSERT INTO entry (job_id, token, kind, name, body, at)
            VALUES (p_id, now_token, 'event', p_name, p_body, moment)
            ON CONFLICT DO NOTHING;
            RETURN CASE WHEN FOUND THEN 'delivered' ELSE 'already' END;
        END IF;
        SELECT EXISTS (SELECT FROM job j WHERE j.id = p_id), CASE
            WHEN EXISTS (
                SELECT FROM entry e
                WHERE e.job_id = p_id AND e.kind = 'event' AND e.name = p_name
            ) THEN 'already'
            WHEN EXISTS (SELECT FROM history h WHERE h.id = p_id) THEN 'finished'
            ELSE 'unknown'
        END INTO unfinished, answer;
        -- It may have been run again between the two statements: once more.
        EXIT WHEN NOT unfinished;
    END LOOP;
    RETURN answer;
END $$;
