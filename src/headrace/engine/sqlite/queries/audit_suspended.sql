-- Jobs that wait for something without being scheduled.
SELECT id FROM suspended
WHERE NOT EXISTS (
    SELECT 1 FROM job WHERE job.seq = suspended.seq AND job.id = suspended.id AND +job.state = 0
);
