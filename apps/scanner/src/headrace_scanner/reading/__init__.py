"""From an address to what a shop says about a product."""
