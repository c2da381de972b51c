-- Forget queues that have had no new job for a day and are not paused, and answer how many. Always safe:
-- claims look for jobs, and a job that is there shows its queue. A time that is ahead by more than a day
-- is of a clock that was wrong. Both are found by their time, whatever else was used today.
WITH now AS MATERIALIZED (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
), unused AS MATERIALIZED (
    SELECT q.name FROM queue q
    WHERE NOT q.paused AND q.used_at < (SELECT moment - interval '1 day' FROM now)
    ORDER BY q.used_at LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), ahead AS MATERIALIZED (
    SELECT q.name FROM queue q
    WHERE NOT q.paused AND q.used_at > (SELECT moment + interval '1 day' FROM now)
    ORDER BY q.used_at LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM queue
    WHERE name = ANY (ARRAY(SELECT name FROM unused UNION ALL SELECT name FROM ahead))
)
SELECT greatest((SELECT count(*) FROM unused), (SELECT count(*) FROM ahead))::integer
