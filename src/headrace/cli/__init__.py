"""The command line: noun, verb, `--json`; errors on stderr, with an exit code for each kind."""
