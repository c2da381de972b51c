"""`headrace schedules`."""
