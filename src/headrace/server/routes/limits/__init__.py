"""Rates, holds and circuit breakers."""
