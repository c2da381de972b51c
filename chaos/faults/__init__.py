"""Faults: one small class each, with what it breaks, for how long, and how it ends."""
