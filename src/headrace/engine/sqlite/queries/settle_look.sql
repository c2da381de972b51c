-- The running jobs that outcomes have come in for, as one JSON text: a row each would hand Python's
-- global lock back and forth for every one of them. Found by id, one step each: CROSS JOIN keeps the
-- order of the join, and +state keeps the planner off an index over states. The caller compares the
-- token.
SELECT CAST(json_group_array(json_array(
    job.id, job.seq, job.token, job.queue, job.lane, job.width, job.hold, job.pinned,
    job.cancel_reason, job.task
)) AS BLOB)
FROM json_each(?1) AS asked
CROSS JOIN job ON job.id = asked.value
WHERE +job.state = 3;
