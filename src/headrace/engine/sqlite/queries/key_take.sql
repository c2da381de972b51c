-- Take an idempotency key, unless it is taken. The primary key decides.
INSERT INTO job_key (key, task, job_id) VALUES (?1, ?2, ?3)
ON CONFLICT (key, task) DO NOTHING;
