"""What comes in from brokers and by the clock, and where published events go."""
