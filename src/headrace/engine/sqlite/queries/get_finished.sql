-- Jobs by id in history.
SELECT finished_job.* FROM json_each(?1) AS asked
CROSS JOIN finished_job ON finished_job.id = asked.value;
