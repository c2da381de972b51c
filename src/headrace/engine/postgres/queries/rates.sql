-- Rates of lanes and queues.

-- name: set_rate
-- What an operator says of a key; see functions/rates/set_rate.sql.
SELECT set_rate($1, $2, $3, $4, $5, $6)

-- name: hold_lane
-- Start nothing of a key for some time; see functions/rates/hold_lane.sql.
SELECT hold_lane($1, $2, $3, $4)

-- name: spare_rates
-- Keep what jobs of a caller's transaction say; see functions/rates/spare_rates.sql.
SELECT spare_rates($1, $2, $3, $4)

-- name: set_rate_clocks
-- Set keys right if the clock went back; see functions/rates/set_rate_clocks.sql.
SELECT * FROM set_rate_clocks($1, $2, $3)

-- name: forget_rates
-- Forget keys that nobody uses any more; see functions/rates/forget_rates.sql.
SELECT * FROM forget_rates($1, $2, $3)

-- name: rates
-- Keys that have a rate or a hold. Times that have passed are NULL.
SELECT k.queue, k.lane, k.count, k.per, k.burst, k.by_operator,
    CASE WHEN k.opens > k.now_at THEN to_timestamp(k.opens) END AS next_at,
    CASE WHEN k.held_until > k.now_at THEN to_timestamp(k.held_until) END AS held_until
FROM (
    SELECT k.*, rate_opens(
        rate_paid(k.tat, k.held_until, k.per / k.count, k.burst),
        k.held_until, k.per / k.count, k.burst, 1
    ) AS opens
    FROM (
        SELECT r.queue, r.lane, (rate_clock(r, to_timestamp(n.now_at))).tat, r.held_until, coalesce(r.set_count, r.count) AS count,
            coalesce(r.set_per, r.per) AS per, coalesce(r.set_burst, r.burst) AS burst,
            r.set_count IS NOT NULL AS by_operator, n.now_at
        FROM rate r CROSS JOIN (
            SELECT date_part('epoch', clock_timestamp()) + $1::double precision AS now_at
        ) n
        WHERE ($2::text IS NULL OR r.queue = $2) AND ($3::text IS NULL OR r.lane = $3)
    ) k
    WHERE k.count IS NOT NULL OR k.held_until > k.now_at
) k
ORDER BY k.queue, k.lane LIMIT $4
