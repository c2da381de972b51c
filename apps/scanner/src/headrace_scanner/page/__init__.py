"""The page: static files."""
