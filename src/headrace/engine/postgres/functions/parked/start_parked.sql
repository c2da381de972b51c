-- Start the best that are parked of some keys, which are locked, as far as they may start now and there are
-- not more than `p_limit` of them; and see that the next has a time that is not later than it may: those
-- before it may have been cancelled, or the rate may have become faster. Not of keys of which ready jobs are
-- left (`p_left`), nor of queues that let nobody start (`p_closed`), nor of tasks that are not among `p_known`
-- (NULL: all are). Answers the keys as they are then, and where the jobs are.
--
-- States: 0 scheduled, 1 waiting for its lane, 2 ready, 3 running; 4 completed, 5 failed, 6 timeout,
-- 7 cancelled.
CREATE OR REPLACE FUNCTION start_parked(
    p_keys rate[], p_left bigint[], p_closed text[], p_moment timestamptz, p_expiring timestamptz,
    p_known text[], p_limit integer, OUT keys rate[], OUT places tid[]
) LANGUAGE plpgsql AS $$
DECLARE
    expiring timestamptz := p_expiring;
    now_at double precision := date_part('epoch', p_moment);
    lane_key rate; whole_key rate; whole_at integer;
    best record; may record;
    whole_opens double precision; whole_paid double precision; whole_interval double precision;
    -- Where the keys of queues are.
    wholes integer[] := '{}'; place_of_whole integer;
    place tid;
BEGIN
    keys := p_keys;
    places := '{}';
    FOR n IN 1..cardinality(keys) LOOP
        IF (keys[n]).lane = '' THEN
            wholes := wholes || n;
        END IF;
    END LOOP;
    FOR n IN 1..cardinality(keys) LOOP
        lane_key := keys[n];
        CONTINUE WHEN lane_key.lane = '' OR coalesce(lane_key.set_count, lane_key.count) IS NULL
            OR lane_key.number = ANY (p_left);
        whole_at := NULL;
        FOREACH place_of_whole IN ARRAY wholes LOOP
            IF (keys[place_of_whole]).queue = lane_key.queue THEN
                whole_at := place_of_whole;
            END IF;
        END LOOP;
        LOOP
            SELECT j.ctid AS place, j.run_at, j.rate, j.attempt, j.task,
                greatest(now_at, date_part('epoch', j.created_at)) AS start_at
            INTO best FROM job j
            WHERE j.lane = lane_key.lane AND j.queue = lane_key.queue
                AND j.state = 0 AND j.parked IS NOT NULL AND
                -- include: not_expired
            ORDER BY j.priority DESC, j.seq LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                IF lane_key.line_at > now_at AND NOT is_any_parked(lane_key.queue, lane_key.lane) THEN
                    lane_key.line_at := 0;
                END IF;
                EXIT;
            END IF;
            SELECT * INTO may FROM parked_opens(lane_key, best.rate, best.attempt);
            whole_opens := 0;
            whole_interval := NULL;
            IF whole_at IS NOT NULL THEN
                whole_key := keys[whole_at];
                -- Each job counts by the rate of its queue.
                SELECT w.opens, w.paid, w.step INTO whole_opens, whole_paid, whole_interval
                FROM parked_opens(whole_key, coalesce(best.rate, '{}'), 0) w;
            END IF;
            IF may.opens > now_at OR cardinality(places) >= p_limit OR lane_key.queue = ANY (p_closed)
                OR whole_opens > now_at OR NOT coalesce(best.task = ANY (p_known), true) THEN
                UPDATE job SET run_at = greatest(p_moment, parked_time(may.opens))
                WHERE ctid = best.place AND run_at > greatest(p_moment, parked_time(may.opens));
                EXIT;
            END IF;
            UPDATE job SET state = 2, run_at = p_moment WHERE ctid = best.place RETURNING ctid INTO place;
            places := places || place;
            IF may.step IS NOT NULL THEN
                lane_key.tat := greatest(may.paid, best.start_at) + may.cost * may.step;
                lane_key.counted_at := best.start_at;
            END IF;
            IF whole_interval IS NOT NULL THEN
                whole_key.tat := greatest(whole_paid, best.start_at) + may.cost * whole_interval;
                whole_key.counted_at := best.start_at;
                keys[whole_at] := whole_key;
            END IF;
        END LOOP;
        keys[n] := lane_key;
    END LOOP;
END $$;
