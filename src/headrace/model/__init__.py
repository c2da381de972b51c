"""Plain data and rules. Nothing in this room does any I/O."""
