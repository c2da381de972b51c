-- Give a running job another turn: later (0), in its lane (1) or now (2). Whether the attempt is
-- given back, whether it is reserved and whether the place is kept were decided under the write lock, as was the token.
UPDATE job SET
    state = ?1, pinned = ?2, reserved = ?9, attempt = attempt - ?3, run_at = coalesce(?4, run_at),
    error_type = coalesce(?5, error_type), error = coalesce(?6, error),
    log = CASE WHEN ?7 IS NULL THEN log
               ELSE substr(CAST(log || ?7 || x'0a' AS BLOB), -262144) END,
    worker = NULL, started_at = NULL
WHERE seq = ?8;
