-- Which of these ids exist already, so that a repeated insert stores nothing twice.
SELECT asked.value FROM json_each(?1) AS asked
WHERE EXISTS (SELECT 1 FROM job WHERE job.id = asked.value)
   OR EXISTS (SELECT 1 FROM history WHERE history.id = asked.value);
