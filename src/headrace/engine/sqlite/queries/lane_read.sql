-- The width and the used places of one lane. Exact, because only the holder of the write lock asks.
SELECT width, used FROM lane WHERE queue = ?1 AND lane = ?2;
