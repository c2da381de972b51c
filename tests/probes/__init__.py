"""Probes: what processes say about themselves."""
