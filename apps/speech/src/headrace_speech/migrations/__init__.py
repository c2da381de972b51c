"""Alembic scripts of the tables."""
