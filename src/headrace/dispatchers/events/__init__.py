"""The event dispatcher: messages of a broker create jobs."""
