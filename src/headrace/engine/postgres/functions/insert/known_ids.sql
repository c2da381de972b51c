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
        known := ARRAY(
            SELECT f.id FROM unnest(p_id) AS u (id)
            CROSS JOIN LATERAL (SELECT h.id FROM history h WHERE h.id = u.id OFFSET 0) f
        );
    END IF;
    IF p_unfinished THEN
        known := known || ARRAY(
            SELECT f.id FROM unnest(p_id) AS u (id)
            CROSS JOIN LATERAL (SELECT j.id FROM job j WHERE j.id = u.id OFFSET 0) f
        );
    END IF;
    RETURN known;
END $$;
