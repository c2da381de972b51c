-- Give a job that has not started, and whose lock we have with that of its lane, what a newer one brings:
-- arguments, meta, expiry and rate, and its time. A job that is due is not put off any more, and one that is
-- parked is due.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION debounce_job(
    p_moment timestamptz, p_id uuid, p_due timestamptz, p_max_wait double precision,
    p_args bytea, p_meta bytea, p_expires_at double precision[], p_expires_in double precision[], p_rate text[]
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    scheduled boolean;
BEGIN
    UPDATE job j SET args = p_args, meta = p_meta,
        rate = coalesce(p_rate[1]::double precision[], j.rate),
        run_at = CASE WHEN j.state = 0 AND j.run_at > p_moment AND j.parked IS NULL
            -- NULL counts for nothing here.
            THEN least(p_due, j.created_at + p_max_wait * interval '1 second')
            ELSE j.run_at
        END
    WHERE j.id = p_id
    RETURNING j.state = 0 AND j.run_at <= p_moment INTO scheduled;
    IF p_expires_at IS NULL AND p_expires_in IS NULL THEN
        DELETE FROM expiry WHERE job_id = p_id;
    ELSE
        PERFORM keep_expiry(p_moment, ARRAY[p_id], ARRAY[p_id], p_expires_at, p_expires_in);
    END IF;
    IF scheduled THEN
        PERFORM move_due(p_moment, ARRAY[p_id], false);
    END IF;
    IF p_rate IS NOT NULL THEN
        PERFORM say_rates(p_moment, ARRAY[j.queue], ARRAY[j.lane], p_rate, NULL)
        FROM job j WHERE j.id = p_id AND j.lane IS NOT NULL;
    END IF;
END $$;
