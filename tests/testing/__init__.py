"""The helpers for tests of users' programs."""
