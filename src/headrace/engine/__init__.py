"""Where jobs live: one contract, three engines."""
