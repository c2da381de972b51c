"""What keeps jobs moving: due, woken and old jobs."""
