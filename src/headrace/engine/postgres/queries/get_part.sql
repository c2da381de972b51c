-- The first of some jobs by id, as many as fit into $2 bytes; with $3 the first one in any case. The
-- last columns tell how far they reach: bytes up to this job, and bytes of all that were asked for.
-- Neither needs a long value to be read: its length is kept beside it. Times as in get.sql. Each job
-- is looked up by itself: the connection for views would rather read a small table whole, and keep
-- that plan when it has grown.
SELECT id, task, queue, state, args, priority, lane, width, hold, key, source, attempt,
    max_attempts, token, timeout, fail_on_crash, stage, progress, message, created_at,
    least(greatest(run_at, '1970-01-01 00:00:00+00'), '9999-01-01 00:00:00+00') AS run_at,
    started_at, completed_at, worker, error_type, error, result, cancel_reason, meta, log, parent,
    child_group, awaits, reached, total
FROM (
    SELECT *, sum(size) OVER (ORDER BY id) AS reached, sum(size) OVER () AS total,
        row_number() OVER (ORDER BY id) AS place
    FROM (
        SELECT found.*, octet_length(args)::bigint + coalesce(octet_length(result), 0) AS size
        FROM unnest($1::uuid[]) AS asked (asked_id)
        CROSS JOIN LATERAL (SELECT * FROM every_job WHERE id = asked_id OFFSET 0) AS found
    ) AS sized
) AS summed
WHERE reached <= $2::bigint OR ($3::boolean AND place = 1)
