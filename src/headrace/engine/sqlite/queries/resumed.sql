-- How often any queue has been resumed: another number than last time means that jobs may run again.
-- From the index queue_resumed alone, which has few.
SELECT total(resumed) FROM queue WHERE resumed > 0;
