"""Selector files, one for each site."""
