-- A job may finish between the lookup of its id and the insert: then it was made a second time.
-- An insert waits for a transaction that deletes the job of that id, so this sees it in history.
CREATE OR REPLACE FUNCTION without_finished(p_stored uuid[])
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    finished uuid[] := known_ids(p_stored, false);
BEGIN
    IF cardinality(finished) = 0 THEN
        RETURN p_stored;
    END IF;
    DELETE FROM job WHERE id = ANY (finished);
    RETURN ARRAY(
        SELECT s.id FROM unnest(p_stored) AS s (id) WHERE s.id NOT IN (SELECT unnest(finished))
    );
END $$;
