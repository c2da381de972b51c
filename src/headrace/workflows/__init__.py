"""Workflows: steps in a file or in code, each run once, in parallel where they can be."""
