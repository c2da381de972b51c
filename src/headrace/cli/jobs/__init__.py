"""`headrace jobs` and `headrace running`: list, show, follow and change jobs."""
