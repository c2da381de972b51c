"""`headrace bundles`, and the commands that bundles add."""
