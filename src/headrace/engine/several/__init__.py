"""Several stores as one engine: queues are spread over them by name (decision 0053)."""
