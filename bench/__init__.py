"""Benchmarks: Headrace beside its peers and beside the bare limit of each engine, in one run."""
