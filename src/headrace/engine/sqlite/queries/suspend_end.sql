-- Jobs that are not scheduled any more wait for nothing.
DELETE FROM suspended WHERE seq IN (SELECT value FROM json_each(?1));
