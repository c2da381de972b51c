"""`headrace up`: everything in one process tree, with the tour."""
