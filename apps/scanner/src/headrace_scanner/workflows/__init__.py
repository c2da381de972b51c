"""One workflow file for each platform."""
