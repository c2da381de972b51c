-- Take the next numbers of arrival. One row under the write lock, so no number is given out twice,
-- not even after the job that had it was deleted.
UPDATE arrival SET seq = seq + ?1 WHERE one = 1 RETURNING seq;
