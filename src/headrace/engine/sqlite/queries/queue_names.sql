-- Every queue that has been used or paused.
SELECT name, paused FROM queue ORDER BY name;
