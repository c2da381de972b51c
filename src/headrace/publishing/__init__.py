"""Published events: what jobs tell the outside, and the destinations that it is delivered to."""
