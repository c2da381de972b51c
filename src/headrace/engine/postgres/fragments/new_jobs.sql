-- The last parameters of functions that store jobs. A column whose values are all the same is sent as
-- one element; `p_key`, `p_lane`, `p_run_at`, `p_meta`, `p_parent`, `p_group`, `p_expires_at`,
-- `p_expires_in` and `p_rate` (each the text of job.rate) are NULL if no job has one; a timeout of -1 means none. Each id comes once.
    p_id uuid[], p_args bytea[], p_task text[], p_queue text[], p_priority smallint[],
    p_delay double precision[], p_run_at double precision[], p_key text[], p_lane text[],
    p_width integer[], p_hold boolean[], p_max_attempts integer[], p_timeout double precision[],
    p_fail_on_crash boolean[], p_source text[], p_meta bytea[],
    p_parent uuid[], p_group text[],
    p_expires_at double precision[], p_expires_in double precision[], p_rate text[]
