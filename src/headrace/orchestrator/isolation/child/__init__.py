"""The program of a child process: `python -m headrace.orchestrator.isolation.child`."""
