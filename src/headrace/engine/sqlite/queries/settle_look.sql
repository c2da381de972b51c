-- The jobs that outcomes have come in for. Found by id, one step each: CROSS JOIN keeps the order
-- of the join, and the state is judged by the caller, or the planner walks an index over states.
SELECT job.id, job.seq, job.token, job.state, job.queue, job.lane, job.width, job.hold,
       job.pinned, job.cancel_reason
FROM json_each(?1) AS asked
CROSS JOIN job ON job.id = asked.value;
