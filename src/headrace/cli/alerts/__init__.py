"""`headrace alerts`."""
