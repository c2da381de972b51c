-- The number of the job that finished last: one step into the table.
SELECT max(number) FROM history;
