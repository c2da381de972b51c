"""Circuit breakers, made of records and holds: see decision 0050."""
