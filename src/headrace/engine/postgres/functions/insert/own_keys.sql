-- Make the keys of jobs theirs, or find whose they are. Returns for each job the id that its
-- (task, key) belongs to; NULL for one without a key. Of equal ones in a call the first counts.
CREATE OR REPLACE FUNCTION own_keys(p_id uuid[], p_task text[], p_key text[])
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    owners uuid[];
    orphans integer;
BEGIN
    LOOP
        INSERT INTO job_key (key, task, job_id)
        SELECT DISTINCT ON (u.key COLLATE "C", u.task COLLATE "C") u.key, u.task, u.id
        FROM unnest(p_id, p_task, p_key) WITH ORDINALITY AS u (id, task, key, ordinal)
        WHERE u.key IS NOT NULL
        ORDER BY u.key COLLATE "C", u.task COLLATE "C", u.ordinal
        ON CONFLICT DO NOTHING;
        -- A transaction of a caller may see the past: a key that was pruned since, beside the one
        -- that was made here instead, which nobody can have deleted. That one counts. Not a join:
        -- it would stop at the first that it finds, because keys are unique.
        SELECT array_agg(x.owner ORDER BY x.ordinal),
            count(*) FILTER (WHERE x.key IS NOT NULL AND x.owner IS NULL)
        INTO owners, orphans
        FROM (
            SELECT u.ordinal, u.key, (
                SELECT k.job_id FROM job_key k WHERE k.key = u.key AND k.task = u.task
                ORDER BY k.xmax::text <> '0' LIMIT 1
            ) AS owner
            FROM unnest(p_task, p_key) WITH ORDINALITY AS u (task, key, ordinal)
        ) x;
        -- A key that was pruned between the two statements is free now: once more.
        EXIT WHEN orphans = 0;
    END LOOP;
    RETURN owners;
END $$;
