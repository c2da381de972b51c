-- What a running attempt tells about itself. The token is the guard: of an attempt that lost its
-- job, nothing is written.
UPDATE job SET
    stage = coalesce(?1, stage), progress = coalesce(?2, progress), message = coalesce(?3, message)
WHERE id = ?4 AND token = ?5 AND +state = 3;
