"""Findings on pages: as cards and notices, and where each leads."""
