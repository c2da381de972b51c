-- A worker's exchange: record outcomes, then lease ready jobs.
--
-- Rows of lane_admission are taken and their lanes filled together with those of settled jobs: all
-- lanes of a transaction are locked at once, or two of them could wait for each other.
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout, 7 cancelled.
-- Outcome kinds: 0 retry, 1 released, 2 snoozed, -1 the same of one that has not started, 3 reserved with those
-- of its task that come next, -2 reserved alone; 4 and more (NULL: 4) the final state.
CREATE OR REPLACE FUNCTION exchange(
    p_offset double precision,
    -- One token stands for all if they are the same, as they are for jobs that run first time.
    p_id uuid[], p_token integer[], p_kind smallint[], p_delay double precision[],
    p_result bytea[], p_error_type text[], p_error text[], p_entry bytea[],
    p_awaits text[],
    -- Whether lanes are to be expected: a hint that saves a statement, and no more.
    p_lanes boolean,
    p_worker text, p_queues text[], p_limit integer,
    -- Ready jobs that came before this one are passed over (0: none are); see connection/claim_memory.py.
    p_from bigint,
    -- The lanes of the jobs that settle, each once, with its queue and how many of them are in it, if
    -- all have one and the caller knows it: a job never changes its lane. Else empty.
    p_lane_queue text[] DEFAULT '{}', p_lane text[] DEFAULT '{}', p_lane_jobs integer[] DEFAULT '{}',
    -- For how many seconds nothing of their lanes starts (empty: nobody says so), which does not come with
    -- a claim, since both lock keys of rates; and how many with a rate may be leased (NULL: any number).
    p_hold_lane double precision[] DEFAULT '{}', p_free integer DEFAULT NULL
)
-- Claimed jobs in no order. If there is something else to say, it comes first, as a row without an id: ids whose
-- outcome was refused (NULL: none), whether other workers should be notified that jobs are ready, how many
-- milliseconds it took to find jobs (NULL: few), and in how many seconds one may start that waits for a rate.
RETURNS TABLE (
    id uuid, token integer, attempt integer, task text, queue text, args bytea,
    max_attempts integer, timeout double precision, fail_on_crash boolean, priority smallint,
    lane text, key text, meta bytea, wait double precision, seq bigint, parent uuid,
    refused uuid[], notify boolean, scan_ms integer, next_in double precision
)
LANGUAGE plpgsql
-- include: look_up
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp() + p_offset * interval '1 second';
    settling integer := coalesce(cardinality(p_id), 0);
    some_return boolean := cardinality(p_kind) > 0 AND 4 > ANY (p_kind);
    -- Those that finish and those that come back are moved by two statements.
    in_two_steps boolean := some_return AND settling > 1;
    known boolean := settling > 0 AND cardinality(p_lane) > 0;
    settled uuid[] := '{}';
    raised integer := 0;
    rivals boolean := false;
    step record; occupied record;
    unlaned integer; lane_widths integer[]; lane_jobs integer[] := p_lane_jobs;
    lane_queues text[] := p_lane_queue; lane_names text[] := nullif(p_lane, '{}');
    admit_queues text[]; admit_lanes text[]; admit_widths integer[];
    freed_queues text[]; freed_lanes text[]; freed integer[];
    worker_number integer; worker_name text; known_tasks text[];
    candidates text[]; names text[]; amounts integer[]; wanted integer;
    places tid[] := '{}'; taken tid[]; drained text[] := '{}';
    reserving uuid[]; tasks text[];
    -- The moment, if there are jobs whose time to start is over then: nobody claims those.
    expiring timestamptz;
    scan_began timestamptz;
    holding uuid[] := CASE WHEN cardinality(p_hold_lane) > 0 THEN p_id END;
    -- Whether there are rates, whether this has changed some, and whether others should look, too.
    rated boolean; said boolean; elsewhere boolean := false;
BEGIN
    IF settling > 1 AND cardinality(p_token) = 1 THEN
        p_token := array_fill(p_token[1], ARRAY[settling]);
    END IF;

    IF p_kind && '{3,-2}' THEN
        reserving := ARRAY(SELECT t.id FROM unnest(p_id, p_kind) AS t (id, kind) WHERE t.kind = 3);
    END IF;

    -- Jobs without a lane first, without reading lanes. It takes a second round only if the
    -- cancel of one was requested between two statements.
    FOR round IN 1..3 LOOP
        EXIT WHEN settling = 0 OR known;
        IF NOT p_lanes OR round > 1 THEN
            IF in_two_steps THEN
                PERFORM lock_running(false, p_id, p_token);
            END IF;
            SELECT * INTO step FROM finish_jobs(moment, false, p_id, p_token, p_kind, p_result,
                p_error_type, p_error, p_entry);
            settled := settled || step.settled;
            IF some_return THEN
                SELECT * INTO step FROM return_jobs(moment, false, p_id, p_token, p_kind, p_delay,
                    p_error_type, p_error, p_entry, p_awaits);
                settled := settled || step.settled;
                raised := raised + step.raised;
            END IF;
            EXIT WHEN cardinality(settled) = settling;
            -- Those that are settled need not be looked up again: often but one of hundreds is left.
            IF cardinality(settled) > 0 THEN
                SELECT array_agg(t.id), array_agg(t.token), array_agg(t.kind), array_agg(t.delay),
                    array_agg(t.result), array_agg(t.error_type), array_agg(t.error),
                    array_agg(t.entry), array_agg(t.awaits)
                INTO p_id, p_token, p_kind, p_delay, p_result, p_error_type, p_error, p_entry,
                    p_awaits
                FROM unnest(p_id, p_token, p_kind, p_delay, p_result, p_error_type, p_error,
                        p_entry, p_awaits)
                    AS t (id, token, kind, delay, result, error_type, error, entry, awaits)
                WHERE t.id NOT IN (SELECT unnest(settled));
            END IF;
        END IF;
        SELECT * INTO lane_queues, lane_names, lane_widths, lane_jobs, unlaned
        FROM lanes_of_running(p_id, p_token);
        EXIT WHEN unlaned = 0;
    END LOOP;

    IF p_limit > 0 AND EXISTS (SELECT FROM lane_admission) THEN
        WITH requested AS (
            DELETE FROM lane_admission a WHERE a.id = ANY (ARRAY(
                SELECT a.id FROM lane_admission a ORDER BY a.id LIMIT 1000 FOR UPDATE SKIP LOCKED
            ))
            RETURNING a.id, a.queue, a.lane, a.width
        )
        SELECT array_agg(r.queue ORDER BY r.id), array_agg(r.lane ORDER BY r.id),
            array_agg(r.width ORDER BY r.id)
        INTO admit_queues, admit_lanes, admit_widths FROM requested r;
    END IF;

    IF lane_names IS NOT NULL OR admit_lanes IS NOT NULL THEN
        IF admit_lanes IS NULL THEN
            SELECT * INTO occupied FROM lock_occupied_lanes(lane_queues, lane_names, lane_jobs);
        ELSE
            IF known THEN
                -- All at once, also new lanes of lane_admission: these are locked with their widths.
                SELECT * INTO lane_queues, lane_names, lane_widths, lane_jobs, unlaned
                FROM lanes_of_running(p_id, p_token);
            END IF;
            PERFORM lock_lanes(lane_queues || admit_queues, lane_names || admit_lanes,
                lane_widths || admit_widths, false);
        END IF;
        IF lane_names IS NOT NULL THEN
            IF in_two_steps THEN
                PERFORM lock_running(true, p_id, p_token);
            END IF;
            SELECT * INTO step FROM finish_jobs(moment, true, p_id, p_token, p_kind, p_result,
                p_error_type, p_error, p_entry);
            settled := settled || step.settled;
            freed_queues := step.queues;
            freed_lanes := step.lanes;
            freed := array_fill(1, ARRAY[coalesce(cardinality(step.lanes), 0)]);
            IF some_return THEN
                SELECT * INTO step FROM return_jobs(moment, true, p_id, p_token, p_kind, p_delay,
                    p_error_type, p_error, p_entry, p_awaits);
                settled := settled || step.settled;
                freed_queues := freed_queues || step.queues;
                freed_lanes := freed_lanes || step.lanes;
                freed := freed || step.freed;
                raised := raised + step.raised;
                rivals := step.rivals;
            END IF;
        END IF;
        IF admit_lanes IS NOT NULL THEN
            PERFORM lock_lanes(admit_queues, admit_lanes, admit_widths, true);
            freed_queues := freed_queues || admit_queues;
            freed_lanes := freed_lanes || admit_lanes;
            freed := freed || array_fill(0, ARRAY[cardinality(admit_lanes)]);
            rivals := true;
        END IF;
        IF rivals THEN
            raised := raised + admit_to_lanes(moment, freed_queues, freed_lanes, freed);
        ELSIF cardinality(settled) = settling AND NOT some_return THEN
            -- All have left that were to leave, so nothing has to be counted or looked up again.
            raised := raised + promote_waiting(
                moment, occupied.queues, occupied.lanes, occupied.lane_jobs, occupied.free);
        ELSIF freed_lanes IS NOT NULL THEN
            raised := raised + fill_lanes(moment, freed_queues, freed_lanes, freed);
        END IF;
    END IF;

    IF cardinality(settled) < settling THEN
        refused := ARRAY(
            SELECT t.id FROM unnest(p_id) AS t (id) WHERE t.id NOT IN (SELECT unnest(settled))
        );
    END IF;

    IF holding IS NOT NULL THEN
        SELECT * INTO step FROM held_lanes(holding, p_hold_lane, settled);
        PERFORM say_rates(moment, step.queues, step.lanes, NULL, step.seconds);
    END IF;
    IF p_limit > 0 THEN
        SELECT w.number, w.name, CASE WHEN EXISTS (
            SELECT FROM expiry x WHERE x.at <= moment AND NOT x.running
        ) THEN moment END, EXISTS (SELECT FROM rate), w.tasks
        INTO worker_number, worker_name, expiring, rated, known_tasks FROM worker w
        WHERE w.id = p_worker AND w.died_at IS NULL;
    END IF;
    scan_began := clock_timestamp();
    IF reserving IS NOT NULL THEN
        PERFORM reserve_next(reserving);
    END IF;
    IF rated THEN
        SELECT * INTO step FROM parked_due(moment);
        raised := raised + cardinality(step.queues);
        elsewhere := NOT step.queues <@ coalesce(p_queues, step.queues);
        p_from := least(p_from, step.first_seq);
        said := step.said;
    END IF;
    IF worker_number IS NOT NULL AND cardinality(p_queues) = 1 THEN
        IF NOT EXISTS (SELECT FROM queue q WHERE q.name = p_queues[1] AND q.paused) THEN
            candidates := p_queues;
        END IF;
    ELSIF worker_number IS NOT NULL THEN
        candidates := open_queues(p_queues, p_from);
    END IF;
    names := candidates;
    IF names IS NOT NULL AND EXISTS (SELECT FROM job j WHERE j.state = 2 AND j.reserved) THEN
        SELECT * INTO step FROM reserved_lines(worker_number, p_queues);
    ELSE
        step := NULL;
    END IF;
    IF rated THEN
        tasks := array_fill(NULL::text, ARRAY[coalesce(cardinality(names), 0)]);
        IF step IS NOT NULL THEN
            names := names || step.queues;
            tasks := tasks || step.tasks;
        END IF;
        SELECT * INTO step FROM rated_claim(
            p_offset, p_queues, names, tasks, p_limit, p_free, p_from, expiring, NOT said,
            known_tasks);
        places := step.places;
        next_in := step.next_in;
        moment := step.moment;
        elsewhere := elsewhere OR step.passed > 0;
        IF step.reserved_jobs > 0 THEN
            reserving := coalesce(reserving, '{}');
        END IF;
        names := NULL;
        IF step.parked_jobs > 0 THEN  -- It was not the search that took long.
            scan_began := clock_timestamp();
        END IF;
    ELSIF step IS NOT NULL THEN
        tasks := array_fill(NULL::text, ARRAY[cardinality(names)]) || step.tasks;
        SELECT * INTO step FROM best_lines(p_limit, p_from, expiring, names || step.queues, tasks);
        names := step.queues;
        amounts := step.amounts;
        tasks := step.tasks;
        wanted := (SELECT sum(a.amount) FROM unnest(amounts) AS a (amount));
    ELSIF cardinality(names) = 1 THEN
        amounts := ARRAY[p_limit];
        wanted := 0;
    END IF;
    -- Whether there is anything to take: lines that were counted above, or several queues.
    IF amounts IS NOT NULL OR cardinality(names) > 1 THEN
        LOOP
            IF amounts IS NULL THEN
                -- How many of the best jobs are in which queue. It locks nothing: one branch a queue would hide jobs.
                SELECT array_agg(x.queue), array_agg(x.amount), sum(x.amount) + cardinality(places)
                INTO names, amounts, wanted
                FROM (
                    SELECT best.queue, count(*)::integer AS amount
                    FROM (
                        SELECT b.queue
                        FROM unnest(candidates) AS q (name)
                        CROSS JOIN LATERAL (
                            SELECT j.queue, j.priority, j.seq FROM job j
                            WHERE j.queue = q.name AND j.state = 2 AND NOT j.reserved
                                AND j.seq >= p_from AND j.ctid <> ALL (places) AND
                                -- include: not_expired
                            ORDER BY j.priority DESC, j.seq LIMIT p_limit - cardinality(places)
                        ) b
                        WHERE q.name <> ALL (drained)
                        ORDER BY b.priority DESC, b.seq LIMIT p_limit - cardinality(places)
                    ) best
                    GROUP BY best.queue
                ) x;
            END IF;
            EXIT WHEN amounts IS NULL;
            taken := ARRAY(
                SELECT b.place
                FROM unnest(names, amounts, tasks) AS q (name, amount, task)
                CROSS JOIN LATERAL (
                    SELECT j.ctid AS place FROM job j
                    WHERE j.queue = q.name AND j.state = 2 AND NOT j.reserved AND j.seq >= p_from
                        AND j.ctid <> ALL (places) AND
                        -- include: not_expired
                    ORDER BY j.priority DESC, j.seq LIMIT q.amount
                    -- Not FOR UPDATE: a job to which an event is being delivered can be claimed.
                    FOR NO KEY UPDATE SKIP LOCKED
                ) b
                WHERE q.task IS NULL
            );
            IF tasks IS NOT NULL THEN
                taken := taken || ARRAY(
                    SELECT b.place
                    FROM unnest(names, amounts, tasks) AS q (name, amount, task)
                    CROSS JOIN LATERAL (
                        SELECT j.ctid AS place FROM job j
                        WHERE j.queue = q.name AND j.task = q.task AND j.state = 2 AND j.reserved AND
                            -- include: not_expired
                        ORDER BY j.priority DESC, j.seq LIMIT q.amount
                        FOR NO KEY UPDATE SKIP LOCKED
                    ) b
                );
            END IF;
            places := places || taken;
            EXIT WHEN cardinality(places) >= wanted;
            -- Another claim is taking some of those: take the next best instead, as before, so that no job is
            -- locked that is not taken. A queue that has given less than was wanted of it has no more; each
            -- round there is one fewer, at least. Reserved jobs are not made up for by others of theirs.
            drained := drained || ARRAY(
                SELECT q.name FROM unnest(names, amounts, tasks) AS q (name, amount, task)
                WHERE q.task IS NULL AND q.amount > (
                    SELECT count(*) FROM job j
                    WHERE j.ctid = ANY (taken) AND j.queue = q.name AND NOT j.reserved
                )
            );
            amounts := NULL;
            tasks := NULL;
        END LOOP;
    END IF;
    scan_ms := 1000 * date_part('epoch', clock_timestamp() - scan_began);
    IF scan_ms < 30 THEN
        scan_ms := NULL;
    END IF;

    -- A claim that takes fewer than it may leaves none in its queues; but rows of lane_admission are taken whatever
    -- their queue, a worker that is gone claims nothing, and there may be more rows, or reserved jobs for others.
    notify := raised > 0 AND (
        cardinality(places) >= p_limit OR worker_number IS NULL OR NOT admit_queues <@ p_queues
        OR elsewhere
    ) OR cardinality(admit_lanes) = 1000 OR reserving IS NOT NULL;

    IF refused IS NOT NULL OR notify OR scan_ms IS NOT NULL OR next_in IS NOT NULL THEN
        RETURN NEXT;
    END IF;

    IF cardinality(places) > 0 THEN
        -- Does not hinder a renewal, but the worker cannot be deleted while jobs are given to it.
        -- Not earlier: an exchange that finds nothing should write nothing.
        PERFORM FROM worker w WHERE w.number = worker_number AND w.died_at IS NULL FOR KEY SHARE;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        RETURN QUERY
        UPDATE job j SET state = 3, reserved = false, token = j.token + 1, attempt = j.attempt + 1,
            holder = worker_number, worker = worker_name,
            started_at = greatest(moment, j.created_at),
            -- One that was parked is as before.
            hold = CASE WHEN j.parked IS NULL THEN j.hold ELSE j.parked & 1 = 1 END,
            pinned = CASE WHEN j.parked IS NULL THEN j.pinned ELSE j.parked > 1 END, parked = NULL
        -- The first rate of all may have come since this began: whoever asks next counts its starts.
        WHERE j.ctid = ANY (places) AND (rated OR j.rate IS NULL)
        RETURNING j.id, j.token, j.attempt, j.task, j.queue, j.args, j.max_attempts, j.timeout,
            j.fail_on_crash, j.priority, j.lane, j.key, j.meta,
            greatest(date_part('epoch', moment - j.run_at), 0), j.seq, j.parent,
            NULL::uuid[], NULL::boolean, NULL::integer, NULL::double precision;
    END IF;
END $$;
