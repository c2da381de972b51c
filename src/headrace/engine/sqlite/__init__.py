"""Jobs in one SQLite file: nothing to install, nothing to start."""
