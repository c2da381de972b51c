"""One program for each peer, run in an environment of its own."""
