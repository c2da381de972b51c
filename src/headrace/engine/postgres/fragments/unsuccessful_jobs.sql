-- Finished jobs of the states asked for, except completed ones: each state along the same index, and
-- merged by their ids. Sorted within each, or the planner would read all before it merges.
(
    (SELECT * FROM finished_job WHERE 5 = ANY (p_states) AND state = 5 ORDER BY id DESC)
    UNION ALL
    (SELECT * FROM finished_job WHERE 6 = ANY (p_states) AND state = 6 ORDER BY id DESC)
    UNION ALL
    (SELECT * FROM finished_job WHERE 7 = ANY (p_states) AND state = 7 ORDER BY id DESC)
) e
