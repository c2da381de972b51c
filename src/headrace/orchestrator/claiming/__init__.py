"""Claiming jobs: when, how many ahead, and what is claimed and not started."""
