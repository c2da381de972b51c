"""Commands for published events."""
