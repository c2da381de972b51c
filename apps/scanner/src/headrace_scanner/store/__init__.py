"""Products, scans and changes, in tables."""
