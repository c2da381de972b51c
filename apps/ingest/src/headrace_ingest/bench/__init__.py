"""Measure the bundle: `python -m headrace_ingest.bench`."""
