-- What every list of jobs may be asked for; NULL leaves a condition out.
AND (p_states IS NULL OR e.state = ANY (p_states))
AND (p_queues IS NULL OR e.queue = ANY (p_queues))
AND (p_tasks IS NULL OR e.task = ANY (p_tasks))
AND (p_lane IS NULL OR e.lane = p_lane)
AND (p_source IS NULL OR e.source = p_source)
AND (p_created_after IS NULL OR e.created_at >= p_created_after)
AND (p_created_before IS NULL OR e.created_at < p_created_before)
