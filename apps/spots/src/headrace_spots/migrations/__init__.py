"""Alembic scripts of the tables of shops."""
