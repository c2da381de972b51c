-- Choose ready jobs to lease where there are rates or holds, best first, and park those that may not start
-- yet. The lines are those of `best_lines`. Of the chosen at most `p_free` (NULL: any number) count by a
-- rate. Those whose task is not among `p_known` (NULL: all are) would be given back, and would have used a
-- start: they are reserved instead. Unless `p_wait`, the caller has locked keys already. Answers where the
-- chosen are, the time by which was decided, how many were parked, left to others and reserved, and in how many
-- seconds it is worth asking again (NULL: nobody knows) for who serves the queues `p_named` (NULL: all).
--
-- Keys are locked in their order before anything is decided by them; those that are met later only if nobody
-- else has them, because that is another order. Nobody who has locked a key waits for a job, so this may wait
-- for keys though it has locked jobs. A job is locked only when it is to start or to be parked: none is
-- hidden from others in vain.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION rated_claim(
    p_offset double precision, p_named text[], p_queues text[], p_tasks text[], p_limit integer,
    p_free integer, p_from bigint, p_expiring timestamptz, p_wait boolean, p_known text[],
    OUT places tid[], OUT moment timestamptz, OUT parked_jobs integer, OUT passed integer,
    OUT reserved_jobs integer, OUT next_in double precision
) LANGUAGE plpgsql AS $$
DECLARE
    -- So many ready jobs it looks at, and so many it leaves to others, at most.
    look_at_most CONSTANT integer := 1000;
    leave_at_most CONSTANT integer := 200;
    expiring timestamptz := p_expiring;
    now_at double precision;
    -- A job that was stored since then starts when it was stored.
    start_at double precision;
    batch integer := least(p_limit, look_at_most);
    looked integer := 0;
    last_priority smallint := 32767;
    last_seq bigint := -1;
    -- Jobs that are looked at: `key` and `whole` are the numbers of the keys of lane and queue, `carries`
    -- tells whether it has a rate, `exempt` whether its retry does not count.
    step record;
    -- The keys that are locked. From `front` on better ones are parked; `blocked`: one has had to wait.
    keys rate[] := '{}'; numbers bigint[] := '{}'; more_keys rate[];
    front double precision[] := '{}'; blocked boolean[] := '{}';
    lane_key rate; key_at integer; key_interval double precision; key_burst integer;
    whole_key rate; whole_at integer; whole_interval double precision; whole_burst integer;
    whole_paid double precision; paid double precision; opens double precision;
    in_line boolean; behind boolean;
    waited boolean; closed text[] := '{}'; opens_first double precision; busy boolean := false;
    lined record; left_keys bigint[] := '{}';
    park_ids uuid[] := '{}'; park_times double precision[] := '{}'; unknown tid[] := '{}';
BEGIN
    places := '{}';
    passed := 0;
    moment := clock_timestamp() + p_offset * interval '1 second';
    LOOP
        SELECT count(*)::integer AS jobs, array_agg(c.place) AS place, array_agg(c.id) AS id,
            array_agg(c.queue) AS queue, array_agg(c.lane) AS lane,
            array_agg(p_known IS NULL OR c.reserved OR c.task = ANY (p_known)) AS known,
            array_agg(c.priority) AS priority, array_agg(c.seq) AS seq,
            array_agg(coalesce(c.rate[4], 1)) AS cost, array_agg(c.rate IS NOT NULL) AS carries,
            array_agg(c.rate IS NOT NULL AND c.rate[5] = 0 AND c.attempt > 0) AS exempt,
            array_agg(date_part('epoch', c.created_at)) AS created,
            array_agg(c.key) AS key, array_agg(c.whole) AS whole,
            bool_or(c.key IS NOT NULL OR c.whole IS NOT NULL) AS some_keys
        INTO step
        FROM (
            SELECT b.*,
                (SELECT r.number FROM rate r WHERE r.lane = b.lane AND r.queue = b.queue) AS key,
                (SELECT r.number FROM rate r WHERE r.lane = '' AND r.queue = b.queue) AS whole
            FROM (
                SELECT b.*
                FROM unnest(p_queues, p_tasks) AS line (queue, task)
                CROSS JOIN LATERAL (
                    (SELECT j.ctid AS place, j.id, j.queue, j.lane, j.priority, j.seq, j.attempt, j.rate,
                         j.created_at, j.task, j.reserved
                     FROM job j
                     WHERE line.task IS NULL AND j.queue = line.queue
                         AND j.state = 2 AND NOT j.reserved AND j.seq >= p_from
                         AND j.priority <= last_priority
                         AND (j.priority < last_priority OR j.seq > last_seq) AND
                         -- include: not_expired
                     ORDER BY j.priority DESC, j.seq LIMIT batch)
                    UNION ALL
                    (SELECT j.ctid, j.id, j.queue, j.lane, j.priority, j.seq, j.attempt, j.rate,
                         j.created_at, j.task, j.reserved
                     FROM job j
                     WHERE j.queue = line.queue AND j.task = line.task AND j.state = 2 AND j.reserved
                         AND j.priority <= last_priority
                         AND (j.priority < last_priority OR j.seq > last_seq) AND
                         -- include: not_expired
                     ORDER BY j.priority DESC, j.seq LIMIT batch)
                ) b
                WHERE line.queue <> ALL (closed)
                ORDER BY b.priority DESC, b.seq LIMIT batch
            ) b
        ) c;
        EXIT WHEN step.jobs = 0;
        last_priority := step.priority[step.jobs];
        last_seq := step.seq[step.jobs];
        IF NOT step.some_keys THEN
            places := places || ARRAY(
                SELECT j.ctid FROM job j WHERE j.ctid = ANY (step.place) AND j.state + 0 = 2
                ORDER BY j.priority DESC, j.seq LIMIT p_limit - cardinality(places)
                FOR NO KEY UPDATE SKIP LOCKED
            );
        ELSE
            waited := p_wait AND cardinality(numbers) = 0;
            more_keys := lock_rates(step.queue, step.lane, numbers, waited);
            IF waited THEN
                -- Not earlier: others may have started some while this waited.
                moment := clock_timestamp() + p_offset * interval '1 second';
            END IF;
            FOR n IN 1..coalesce(cardinality(more_keys), 0) LOOP
                keys := keys || rate_clock(
                    more_keys[n], statement_timestamp() + p_offset * interval '1 second');
                numbers := numbers || (more_keys[n]).number;
                front := front || 0::double precision;
                blocked := blocked || false;
            END LOOP;
        END IF;
        now_at := date_part('epoch', moment);
        FOR n IN 1..step.jobs LOOP
            EXIT WHEN NOT step.some_keys OR cardinality(places) = p_limit
                OR passed = leave_at_most;
            key_at := array_position(numbers, step.key[n]);
            whole_at := array_position(numbers, step.whole[n]);
            IF step.key[n] IS NOT NULL AND key_at IS NULL
                OR step.whole[n] IS NOT NULL AND whole_at IS NULL THEN
                busy := true;
                CONTINUE;
            END IF;
            CONTINUE WHEN step.queue[n] = ANY (closed);
            whole_interval := NULL;
            IF whole_at IS NOT NULL THEN
                whole_key := keys[whole_at];
                whole_interval :=
                    coalesce(whole_key.set_per / whole_key.set_count, whole_key.per / whole_key.count);
                whole_burst := coalesce(whole_key.set_burst, whole_key.burst);
                whole_paid :=
                    rate_paid(whole_key.tat, whole_key.held_until, whole_interval, whole_burst);
                opens := rate_opens(
                    whole_paid, whole_key.held_until, whole_interval, whole_burst, step.cost[n]);
                IF opens > now_at THEN
                    closed := closed || step.queue[n];
                    opens_first := least(opens_first, opens);
                    CONTINUE;
                END IF;
            END IF;
            key_interval := NULL;
            IF key_at IS NOT NULL THEN
                lane_key := keys[key_at];
                IF (lane_key.set_count IS NOT NULL OR step.carries[n]) AND NOT step.exempt[n] THEN
                    key_interval :=
                        coalesce(lane_key.set_per / lane_key.set_count, lane_key.per / lane_key.count);
                    key_burst := coalesce(lane_key.set_burst, lane_key.burst);
                END IF;
            END IF;
            IF NOT step.known[n] AND (key_interval IS NOT NULL OR whole_interval IS NOT NULL) THEN
                unknown := unknown || step.place[n];
                CONTINUE;
            END IF;
            IF p_free <= 0 AND (key_interval IS NOT NULL OR whole_interval IS NOT NULL) THEN
                passed := passed + 1;
                left_keys := left_keys || step.key[n];
                CONTINUE;
            END IF;
            PERFORM FROM job j WHERE j.ctid = step.place[n] AND j.state + 0 = 2
            FOR NO KEY UPDATE SKIP LOCKED;
            CONTINUE WHEN NOT FOUND;
            IF key_at IS NOT NULL THEN
                paid := rate_paid(lane_key.tat, lane_key.held_until, key_interval, key_burst);
                opens :=
                    rate_opens(paid, lane_key.held_until, key_interval, key_burst, step.cost[n]);
                in_line := key_interval IS NOT NULL AND lane_key.line_at > now_at;
                behind := in_line AND (-step.priority[n], step.seq[n])
                    > (-lane_key.line_priority, lane_key.line_seq);
                IF key_interval IS NULL THEN
                    NULL;
                ELSIF opens <= now_at AND NOT behind AND NOT blocked[key_at] THEN
                    start_at := greatest(now_at, step.created[n]);
                    lane_key.tat := greatest(paid, start_at) + step.cost[n] * key_interval;
                    lane_key.counted_at := start_at;
                ELSIF in_line AND NOT behind THEN
                    -- Better than the last of the line: it asks for the next slot.
                    blocked[key_at] := true;
                    opens := greatest(opens, front[key_at], now_at);
                    front[key_at] := opens + step.cost[n] * key_interval;
                ELSE
                    blocked[key_at] := true;
                    IF in_line THEN
                        paid := lane_key.line_tat;
                    END IF;
                    opens := greatest(lane_key.line_at, rate_opens(
                        paid, lane_key.held_until, key_interval, key_burst, step.cost[n]));
                    lane_key.line_tat := greatest(paid, opens) + step.cost[n] * key_interval;
                    lane_key.line_at := opens;
                    lane_key.line_priority := step.priority[n];
                    lane_key.line_seq := step.seq[n];
                END IF;
                keys[key_at] := lane_key;
                IF opens > now_at THEN
                    park_ids := park_ids || step.id[n];
                    park_times := park_times || opens;
                    CONTINUE;
                END IF;
            END IF;
            IF whole_interval IS NOT NULL THEN
                start_at := greatest(now_at, step.created[n]);
                whole_key.tat := greatest(whole_paid, start_at) + step.cost[n] * whole_interval;
                whole_key.counted_at := start_at;
                keys[whole_at] := whole_key;
            END IF;
            IF key_interval IS NOT NULL OR whole_interval IS NOT NULL THEN
                p_free := p_free - 1;
            END IF;
            places := places || step.place[n];
        END LOOP;
        looked := looked + step.jobs;
        EXIT WHEN cardinality(places) >= p_limit OR passed >= leave_at_most
            OR step.jobs < batch OR looked >= look_at_most;
        batch := least(200, look_at_most - looked);
    END LOOP;
    parked_jobs := cardinality(park_ids);
    IF parked_jobs > 0 THEN
        PERFORM park_jobs(park_ids, park_times);
    END IF;
    reserved_jobs := cardinality(unknown);
    IF reserved_jobs > 0 THEN
        UPDATE job SET reserved = true
        WHERE ctid = ANY (ARRAY(
            SELECT j.ctid FROM job j
            WHERE j.ctid = ANY (unknown) AND j.state + 0 = 2 AND NOT j.reserved
            FOR NO KEY UPDATE SKIP LOCKED
        ));
    END IF;
    IF cardinality(keys) > 0 THEN
        SELECT * INTO lined FROM start_parked(
            keys, left_keys, closed, moment, expiring, p_known,
            CASE
                WHEN passed >= leave_at_most OR looked >= look_at_most THEN 0
                ELSE least(p_limit - cardinality(places), p_free)
            END);
        keys := lined.keys;
        places := places || lined.places;
        UPDATE rate r SET tat = k.tat, counted_at = k.counted_at, line_at = k.line_at,
            line_tat = k.line_tat, line_priority = k.line_priority, line_seq = k.line_seq
        FROM unnest(keys) AS k
        WHERE r.lane = ANY (ARRAY[k.lane]) AND r.queue = k.queue
            AND (r.tat, r.counted_at, r.line_at, r.line_tat, r.line_seq)
                IS DISTINCT FROM (k.tat, k.counted_at, k.line_at, k.line_tat, k.line_seq);
    END IF;
    IF opens_first IS NOT NULL THEN
        next_in := greatest(opens_first - date_part('epoch', moment), 0);
    END IF;
    -- NULL counts for nothing here.
    next_in := least(next_in, next_parked(moment, p_named));
    IF parked_jobs > 0 AND looked >= look_at_most THEN
        next_in := 0;
    ELSIF busy THEN
        -- Whoever has those keys is done soon.
        next_in := least(next_in, 0.02);
    END IF;
END $$;
