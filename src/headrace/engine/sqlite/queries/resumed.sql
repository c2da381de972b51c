-- How often any queue has been resumed: more than last time means that jobs may run again.
SELECT total(resumed) FROM queue;
