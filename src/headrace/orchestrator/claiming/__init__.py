"""Claiming jobs: when to look, how many ahead, and what is claimed and not started."""
