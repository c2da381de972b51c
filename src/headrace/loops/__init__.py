"""Background loops, event loops in threads, and signals that stop programs."""
