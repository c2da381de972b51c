"""Alembic scripts of the tables of documents."""
