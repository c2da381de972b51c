"""Several stores as one engine, of several kinds and with one of them away."""
