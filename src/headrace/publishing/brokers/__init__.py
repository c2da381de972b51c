"""Destinations that are brokers, one module for each. Drivers are extras."""
