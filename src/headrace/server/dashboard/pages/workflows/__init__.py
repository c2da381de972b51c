"""Workflows and their runs."""
