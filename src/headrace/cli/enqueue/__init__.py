"""`headrace enqueue`."""
