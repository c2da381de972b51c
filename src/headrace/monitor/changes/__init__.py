"""Changes of jobs, found by reading and told to subscribers."""
