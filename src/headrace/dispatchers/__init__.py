"""What starts work: the clock, and messages."""
