-- Delete idle lanes that are stored behind $1, and answer the place of the last of them and how many.
-- Always safe: whoever admits a job makes the lane it needs. One that somebody has locked is about to
-- be used. Step by step in the order of places, so that all steps together read the table once.
WITH idle AS MATERIALIZED (
    SELECT l.ctid AS place FROM lane l
    WHERE l.ctid > $1::tid AND l.used = 0 LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM lane WHERE ctid = ANY (ARRAY(SELECT place FROM idle))
)
SELECT max(place), count(*)::integer FROM idle
