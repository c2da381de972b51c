"""Counters of workers: of each while it is there, and of all that ever were."""
