-- Forget queues behind $2 that have had no new job for a day and are not paused, and answer the last
-- of them and how many. Always safe: claims look for jobs, and a job that is there shows its queue. A
-- time that is ahead by more than a day is of a clock that was wrong.
WITH unused AS MATERIALIZED (
    SELECT q.name FROM queue q
    WHERE q.name > $2::text AND NOT q.paused
        AND abs(date_part('epoch', clock_timestamp() + $1::double precision * interval '1 second'
            - q.used_at)) > 86400
    ORDER BY q.name LIMIT $3::integer
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM queue WHERE name = ANY (ARRAY(SELECT name FROM unused))
)
SELECT max(name), count(*)::integer FROM unused
