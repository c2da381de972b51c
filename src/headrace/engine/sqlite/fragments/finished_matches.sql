-- How many finished jobs were looked at, the last of them, and the ids of those that match. The
-- statement says which jobs these are, and closes the bracket.
SELECT count(*), min(id), json_group_array(match) FILTER (WHERE match IS NOT NULL)
FROM (
    SELECT id, CASE WHEN
        -- include: job_filter
        -- include: finished_filter
    THEN id END AS match
    FROM history
