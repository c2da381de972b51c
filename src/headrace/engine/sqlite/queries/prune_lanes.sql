-- Forget idle lanes. Always safe: no row means that no place is used, and the width rides on jobs.
DELETE FROM lane WHERE (queue, lane) IN (SELECT queue, lane FROM lane WHERE used = 0 LIMIT ?1);
