"""Jobs in PostgreSQL: many machines, one server, enqueue inside the caller's own transaction."""
