-- For functions that look up the few rows they are about: one plan, along indexes, whatever the
-- statistics say. A plan that was right for a small table may be used on a backlog.
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
