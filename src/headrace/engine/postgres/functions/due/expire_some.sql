-- Cancel those of `p_unstarted` that have not started and whose time is over, mark those of `p_started`
-- that are running in their first attempt, and forget all entries that were seen and mean nothing any more.
-- Jobs are looked at again when they are locked; those with a lane after their lanes. Running ones are
-- locked without waiting, last: who gives one back at the same time is not missed, and the next call
-- sees to it. Nobody waits for an entry: only those who have locked its job change it, or the job is gone.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION expire_some(
    p_moment timestamptz, p_seen uuid[], p_unstarted uuid[], p_started uuid[], p_reason text
)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    met uuid[];
    gone uuid[] := '{}';
    step record;
    parked_queues text[]; parked_lanes text[];
    lane_queues text[]; lane_names text[]; lane_widths integer[];
BEGIN
    met := lock_jobs(false, p_unstarted);
    SELECT * INTO step
    FROM cancel_unstarted(p_moment, false, expired_jobs(p_moment, met), p_reason);
    gone := gone || step.ids;

    SELECT array_agg(j.id), array_agg(j.queue), array_agg(j.lane), array_agg(j.width)
    INTO met, lane_queues, lane_names, lane_widths
    FROM job j WHERE j.id = ANY (p_unstarted) AND j.lane IS NOT NULL;
    IF lane_names IS NOT NULL THEN
        PERFORM lock_lanes(lane_queues, lane_names, lane_widths, false);
        met := lock_jobs(true, met);
        SELECT * INTO step
        FROM cancel_unstarted(p_moment, true, expired_jobs(p_moment, met), p_reason);
        gone := gone || step.ids;
        IF step.lanes IS NOT NULL
            AND fill_lanes(p_moment, step.queues, step.lanes, step.freed) > 0 THEN
            PERFORM pg_notify(current_schema(), 'work');
        END IF;
        parked_queues := step.parked_queues;
        parked_lanes := step.parked_lanes;
    END IF;

    IF p_started IS NOT NULL THEN
        met := ARRAY(
            SELECT j.id FROM job j
            WHERE j.id = ANY (p_started) AND j.state + 0 = 3 AND j.attempt = 1
            FOR NO KEY UPDATE SKIP LOCKED
        );
        UPDATE expiry SET running = true WHERE job_id = ANY (met) AND at <= p_moment;
    END IF;
    DELETE FROM expiry WHERE job_id = ANY (ARRAY(
        SELECT x.job_id FROM expiry x
        WHERE x.job_id = ANY (p_seen) AND x.at <= p_moment AND (
            SELECT j.id FROM job j
            WHERE j.id = x.job_id AND j.attempt = CASE WHEN j.state = 3 THEN 1 ELSE 0 END
        ) IS NULL
        FOR UPDATE SKIP LOCKED
    ));
    IF parked_lanes IS NOT NULL THEN
        PERFORM say_rates(p_moment, parked_queues, parked_lanes, NULL, NULL);
    END IF;
    RETURN gone;
END $$;
