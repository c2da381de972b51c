-- A finished parent of a job that may go.
SELECT number, completed_at, parent FROM history WHERE id = ?1;
