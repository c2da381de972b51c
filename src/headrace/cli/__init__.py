"""The command line: noun, verb, `--json`; errors to stderr with an exit code that tells."""
