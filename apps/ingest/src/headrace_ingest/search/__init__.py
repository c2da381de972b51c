"""Search over documents by meaning and by words."""
