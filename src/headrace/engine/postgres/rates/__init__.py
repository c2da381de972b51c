"""Rates of lanes and queues."""
