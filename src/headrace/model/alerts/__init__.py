"""Alert rules, and the notices that receivers get."""
