"""Rates, holds and circuit breakers: what operators see and change."""
