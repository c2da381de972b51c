-- Delete idle lanes. Always safe: whoever admits a job makes the lane it needs. One that somebody
-- has locked is about to be used.
DELETE FROM lane WHERE ctid = ANY (ARRAY(
    SELECT l.ctid FROM lane l WHERE l.used = 0 LIMIT $1::integer FOR UPDATE SKIP LOCKED
))
