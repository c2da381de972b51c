"""The cron dispatcher: schedules create jobs. `python -m headrace.dispatchers.cron`."""
