"""Handlers in processes of their own."""
