-- Make waiting jobs of many lanes ready at once; lanes_look.sql found them in this transaction.
UPDATE job SET state = 2 WHERE seq IN (SELECT value FROM json_each(?1));
