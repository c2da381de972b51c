"""Events that jobs publish, and the destinations that get them."""
