-- What every list of jobs may be asked for.
p_before uuid, p_states smallint[], p_queues text[], p_tasks text[], p_lane text,
p_source text, p_created_after timestamptz, p_created_before timestamptz, p_key text,
p_limit integer
