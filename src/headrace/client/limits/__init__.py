"""Verbs for rates, holds and circuit breakers."""
