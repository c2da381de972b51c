-- In the order of headrace.engine.postgres.views.
p_unfinished => $1, p_unsuccessful => $2, p_completed => $3, p_before => $4, p_states => $5,
p_queues => $6, p_tasks => $7, p_lane => $8, p_source => $9, p_created_after => $10,
p_created_before => $11, p_error_types => $12, p_worker => $13, p_finished_after => $14,
p_finished_before => $15, p_key => $16, p_parent => $17, p_group => $18, p_limit => $19,
p_look => $20
