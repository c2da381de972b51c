"""Durable background jobs for Python services."""
