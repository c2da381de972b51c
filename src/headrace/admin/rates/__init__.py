"""Rates and holds: what operators change."""
