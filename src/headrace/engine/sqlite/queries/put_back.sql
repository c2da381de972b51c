-- Put a beaten ready job back among the waiting ones of its lane; it keeps its number of arrival.
UPDATE job SET state = 1, reserved = 0 WHERE seq = ?1 AND state = 2;
