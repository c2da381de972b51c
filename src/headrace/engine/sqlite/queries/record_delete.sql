-- Delete a record whose version the caller has checked in the same transaction.
DELETE FROM record WHERE kind = ?1 AND key = ?2;
