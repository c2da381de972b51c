"""Durable steps of a handler: stages, children, sleeps and waits, artifacts."""
