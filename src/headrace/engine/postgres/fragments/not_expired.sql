-- Whether a ready job may be claimed: it has started before, or its time to start is not over. `expiring` is
-- NULL while nobody's time is: then nothing is looked up. Not NOT EXISTS, for which the planner may read
-- all entries first.
(
    expiring IS NULL OR j.attempt > 0
    OR (SELECT x.job_id FROM expiry x WHERE x.job_id = j.id AND x.at <= expiring) IS NULL
)
