"""What keeps jobs moving: due, woken, expired and old jobs."""
