"""Rates of lanes and queues, and holds."""
