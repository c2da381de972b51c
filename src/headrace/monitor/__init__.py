"""What people see. This room only reads."""
