-- Which of these ids are stored already. Ids grow with time, so one probe rules out for nearly
-- every call that they are in history; `p_unfinished` asks to look among unfinished jobs, too.
CREATE OR REPLACE FUNCTION known_ids(p_id uuid[], p_unfinished boolean)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    known uuid[] := '{}';
BEGIN
    IF (SELECT h.id FROM history h ORDER BY h.id DESC LIMIT 1) >= ANY (p_id) THEN
        known := ARRAY(SELECT h.id FROM unnest(p_id) AS u (id) JOIN history h ON h.id = u.id);
    END IF;
    IF p_unfinished THEN
        known := known || ARRAY(
            SELECT j.id FROM unnest(p_id) AS u (id) JOIN job j ON j.id = u.id
        );
    END IF;
    RETURN known;
END $$;
