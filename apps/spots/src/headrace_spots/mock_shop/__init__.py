"""A small city of shops that do not exist, for the demo and for tests:
`python -m headrace_spots.mock_shop`.

All names and reviews are invented.
"""
