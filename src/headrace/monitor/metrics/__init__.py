"""Metrics for Prometheus: their names and labels, once for servers, workers and dispatchers."""
