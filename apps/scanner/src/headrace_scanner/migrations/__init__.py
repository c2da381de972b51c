"""Alembic scripts of the tables of products."""
