"""`headrace dispatcher` and `headrace dead-letters`."""
