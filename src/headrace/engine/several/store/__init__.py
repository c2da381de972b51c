"""One store of several, all of them together, and which queue is where."""
