-- Jobs by id in the hot table; get_finished.sql looks in history from the same snapshot.
SELECT unfinished_job.* FROM json_each(?1) AS asked
CROSS JOIN unfinished_job ON unfinished_job.id = asked.value;
