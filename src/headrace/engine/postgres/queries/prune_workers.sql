-- Forget workers that died more than a day ago and hold nothing.
WITH now AS MATERIALIZED (
    SELECT clock_timestamp() + $1::double precision * interval '1 second' AS moment
)
DELETE FROM worker w
WHERE w.died_at < (SELECT moment - interval '1 day' FROM now)
    AND NOT EXISTS (SELECT FROM job j WHERE j.holder = w.number AND j.state = 3)
