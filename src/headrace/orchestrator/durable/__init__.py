"""What a handler stores while it runs: stages, children, sleeps and waits, artifacts."""
