"""What a job's durable steps leave behind: entries, children, what is awaited, what is written."""
