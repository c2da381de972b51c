"""Routes that forms are sent to; all modules are found by themselves."""
