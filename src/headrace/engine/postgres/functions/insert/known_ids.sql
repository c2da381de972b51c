-- Which of these ids are stored already. Ids grow with time, so one probe rules out for nearly
-- every call that they are in history; `p_unfinished` asks to look among unfinished jobs, too. The
-- probe is for ids from the least of these on, not for the newest in history: where all was pruned,
-- its entries would be passed over, and where the planner believes so, it would sort all that came
-- since.
CREATE OR REPLACE FUNCTION known_ids(p_id uuid[], p_unfinished boolean)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    known uuid[] := '{}';
BEGIN
    IF EXISTS (
        SELECT FROM history h
        WHERE h.id >= (SELECT u.id FROM unnest(p_id) AS u (id) ORDER BY u.id LIMIT 1)
    ) THEN
        known := ARRAY(SELECT h.id FROM unnest(p_id) AS u (id) JOIN history h ON h.id = u.id);
    END IF;
    IF p_unfinished THEN
        known := known || ARRAY(
            SELECT j.id FROM unnest(p_id) AS u (id) JOIN job j ON j.id = u.id
        );
    END IF;
    RETURN known;
END $$;
