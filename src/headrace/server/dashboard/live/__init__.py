"""Keeps open pages up to date: one look for all who have the same view, one stream for each."""
