"""What an App can do for those who run the place: queues, schedules, dead letters, keys, files."""
