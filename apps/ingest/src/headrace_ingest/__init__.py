"""Headrace bundle `ingest`: documents are parsed, cut into chunks, masked, and found by meaning."""
