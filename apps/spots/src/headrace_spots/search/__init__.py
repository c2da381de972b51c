"""Reviews found by meaning."""
