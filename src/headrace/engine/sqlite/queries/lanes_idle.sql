-- Idle lanes behind one of them, in their order.
SELECT queue, lane FROM lane WHERE used = 0 AND (queue, lane) > (?1, ?2) ORDER BY queue, lane LIMIT ?3;
