"""The steps of a run, and the jobs that begin runs."""
