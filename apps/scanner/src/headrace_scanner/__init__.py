"""Products, checked on the platforms that sell them."""
