-- Forget workers that died more than a day ago and hold nothing.
DELETE FROM worker w
WHERE w.died_at < clock_timestamp() + $1::double precision * interval '1 second' - interval '1 day'
    AND NOT EXISTS (SELECT FROM job j WHERE j.holder = w.number AND j.state = 3)
