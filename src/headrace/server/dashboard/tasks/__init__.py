"""What pages of tasks need: a form made of a schema, and numbers."""
