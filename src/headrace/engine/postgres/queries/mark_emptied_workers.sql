-- Mark dead workers that hold nothing; see migrations/0009_steering.sql.
SELECT mark_emptied_workers()
