"""The report of a run: one HTML file with plots, without scripts."""
