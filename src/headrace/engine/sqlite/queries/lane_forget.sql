-- Forget a lane that is idle. Always safe: no row means that no place is used, and the width rides on
-- jobs.
DELETE FROM lane WHERE queue = ?1 AND lane = ?2 AND used = 0;
