"""What deploy/ has: checked by the real tools, and run."""
