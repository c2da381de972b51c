-- Store a job that says what happens to others which have its key, or wait in its lane. Returns one row:
-- the job that counts (NULL: it was refused), whether that is new, which jobs were cancelled for it, and
-- which were asked to stop. `p_reason` is what these are told.
--
-- Locks in the order of all verbs: the key, the job that has it if that is in no lane, the lanes of both
-- in one statement, the jobs in them. What was seen of a job before is looked at again when it is locked.
-- If the job is refused, or turns out to be stored already, everything is undone.
--
-- The last parameters are those of `insert_jobs`, for one job.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION insert_by_policy(
    p_offset double precision, p_on_duplicate text, p_window double precision,
    p_max_wait double precision, p_when_full text, p_reason text,
    -- include: new_jobs
)
RETURNS TABLE (stored uuid, created boolean, cancelled uuid[], stopping uuid[])
LANGUAGE plpgsql
-- include: look_up
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz;
    due timestamptz;
    -- The job that has the key, and where it is.
    owner uuid; owner_queue text; owner_lane text; owner_width integer;
    met uuid[];
    unstarted boolean := false;
    step record;
    raised integer := 0;
    -- Lanes of parked jobs that were cancelled.
    gone_queues text[]; gone_lanes text[];
BEGIN
    stored := p_id[1];
    created := false;
    cancelled := '{}';
    stopping := '{}';
    IF cardinality(known_ids(p_id, true)) > 0 THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF p_key IS NOT NULL THEN
        owner := nullif(lock_key(p_id[1], p_task[1], p_key[1]), p_id[1]);
    END IF;
    -- Not earlier: whoever had the key until now may have stored a job meanwhile.
    moment := clock_timestamp() + p_offset * interval '1 second';
    due := coalesce(to_timestamp(p_run_at[1]), moment + p_delay[1] * interval '1 second');
    IF owner IS NOT NULL AND p_on_duplicate = 'return' THEN
        IF p_window IS NULL OR EXISTS (
            SELECT FROM job j
            WHERE j.id = owner AND j.created_at > moment - p_window * interval '1 second'
            UNION ALL
            SELECT FROM history h
            WHERE h.id = owner AND h.created_at > moment - p_window * interval '1 second'
        ) THEN
            stored := owner;
            RETURN NEXT;
            RETURN;
        END IF;
    ELSIF owner IS NOT NULL THEN
        -- Without a row it has ended; whoever runs it again comes after this call.
        SELECT j.queue, j.lane, j.width INTO owner_queue, owner_lane, owner_width
        FROM job j WHERE j.id = owner;
        IF owner_lane IS NULL THEN
            met := lock_jobs(false, ARRAY[owner]);
        END IF;
    END IF;
    IF owner_lane IS NOT NULL OR p_lane IS NOT NULL THEN
        -- Also the lane of a job that is put off: it may be due when it is stored.
        PERFORM lock_lanes(
            CASE WHEN owner_lane IS NULL THEN '{}' ELSE ARRAY[owner_queue] END
                || CASE WHEN p_lane IS NOT NULL THEN p_queue END,
            CASE WHEN owner_lane IS NULL THEN '{}' ELSE ARRAY[owner_lane] END || p_lane,
            CASE WHEN owner_lane IS NULL THEN '{}' ELSE ARRAY[owner_width] END
                || CASE WHEN p_lane IS NOT NULL THEN p_width END,
            false
        );
        IF owner_lane IS NOT NULL THEN
            met := lock_jobs(true, ARRAY[owner]);
        END IF;
    END IF;
    IF cardinality(met) > 0 THEN
        SELECT j.token = 0 INTO unstarted FROM job j WHERE j.id = owner;
    END IF;
    IF unstarted THEN
        IF p_on_duplicate = 'debounce' AND owner_queue = p_queue[1]
            AND owner_lane IS NOT DISTINCT FROM p_lane[1] THEN
            PERFORM debounce_job(moment, owner, due, p_max_wait, p_args[1], p_meta[1],
                p_expires_at, p_expires_in, p_rate);
            stored := owner;
            RETURN NEXT;
            RETURN;
        END IF;
        SELECT * INTO step
        FROM cancel_unstarted(moment, owner_lane IS NOT NULL, ARRAY[owner], p_reason);
        cancelled := step.ids;
        gone_queues := step.parked_queues;
        gone_lanes := step.parked_lanes;
        IF owner_lane IS NOT NULL THEN
            raised := fill_lanes(moment, step.queues, step.lanes, step.freed);
        END IF;
    END IF;
    IF owner IS NOT NULL THEN
        UPDATE job_key k SET job_id = p_id[1] WHERE k.key = p_key[1] AND k.task = p_task[1];
    END IF;
    IF p_lane IS NOT NULL AND due <= moment AND p_when_full <> 'wait' THEN
        PERFORM lock_lanes(p_queue, p_lane, p_width, true);
        -- Some may wait though there is a place: if the lane is wider now, or if jobs of callers are not
        -- admitted yet. The lane is full if there is not one for all of them and the new one.
        PERFORM FROM lane l
        WHERE l.queue = p_queue[1] AND l.lane = p_lane[1] AND l.used + (
            SELECT count(*) FROM (
                SELECT FROM job j WHERE j.queue = p_queue[1] AND j.lane = p_lane[1] AND j.state = 1
                LIMIT greatest(l.width - l.used, 0)
            ) w
        ) >= l.width;
        IF FOUND AND p_when_full = 'refuse' THEN
            stored := NULL;
            RAISE EXCEPTION 'the lane is full' USING ERRCODE = 'HR002';
        ELSIF FOUND THEN
            SELECT * INTO step FROM clear_lane(
                moment, p_queue[1], p_lane[1], p_when_full = 'cancel_running', p_reason);
            cancelled := cancelled || step.cancelled;
            stopping := step.stopping;
            IF step.parked THEN
                gone_queues := gone_queues || p_queue;
                gone_lanes := gone_lanes || p_lane;
            END IF;
        ELSE
            -- Those that wait come first.
            raised := raised + fill_lanes(moment, p_queue, p_lane, '{0}');
        END IF;
    END IF;
    IF raised > 0 THEN
        PERFORM pg_notify(current_schema(), 'work');
    END IF;
    PERFORM FROM insert_jobs(p_offset, p_id, p_args, p_task, p_queue, p_priority, p_delay, p_run_at,
        p_key, p_lane, p_width, p_hold, p_max_attempts, p_timeout, p_fail_on_crash, p_source,
        p_meta, p_parent, p_group, p_expires_at, p_expires_in, p_rate, gone_queues, gone_lanes);
    IF FOUND THEN
        RAISE EXCEPTION 'the job is stored already' USING ERRCODE = 'HR002';
    END IF;
    created := true;
    RETURN NEXT;
EXCEPTION WHEN SQLSTATE 'HR002' THEN
    cancelled := '{}';
    stopping := '{}';
    RETURN NEXT;
END $$;
