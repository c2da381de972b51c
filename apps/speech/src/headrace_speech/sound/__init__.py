"""Samples: read, evened out, joined and encoded."""
