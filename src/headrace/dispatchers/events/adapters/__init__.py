"""Adapters for brokers, each in a file of its own. Drivers are imported when one is made."""
