-- How many finished jobs there are, counted in the smallest index.
SELECT count(*) FROM history;
