-- By when a job has to start; NULL: it has no such time. One look-up for each, whatever the planner believes:
-- the connection for views would rather read a small table whole, for each job, and keep that plan when
-- it has grown.
CREATE OR REPLACE FUNCTION expiry_of(p_id uuid)
RETURNS timestamptz LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT x.at FROM expiry x WHERE x.job_id = p_id);
END $$;
