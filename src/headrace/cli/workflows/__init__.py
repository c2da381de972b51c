"""`headrace workflows`."""
