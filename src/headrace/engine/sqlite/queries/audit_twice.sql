-- Jobs that are both finished and unfinished.
SELECT job.id FROM job JOIN history ON history.id = job.id;
