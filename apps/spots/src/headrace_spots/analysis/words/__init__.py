"""Words of both languages: what they name, what they say, and how clauses are made of them."""
