-- Delete one finished job; its entries and its key follow in the same transaction.
DELETE FROM history WHERE number = ?1;
