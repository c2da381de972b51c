"""Headrace bundle: a script with several roles becomes one audio file."""
